// Generated from openapi/argosy.json by `npm run types`. Do not edit.

export interface AdapterCondition {
  last_transition_time: string;
  message?: string;
  reason?: string;
  status: Tri;
  type: string;
}

export interface AdapterConditionCamel {
  lastTransitionTime: string;
  message?: string;
  reason?: string;
  status: Tri;
  type: string;
}

export type AdapterPhase = 'Pending' | 'Running' | 'Complete' | 'Failed';

export interface AdapterStatus {
  adapter: string;
  conditions: AdapterCondition[];
  created_time: string;
  data: Record<string, unknown>;
  last_report_time: string;
  metadata?: Record<string, unknown>;
  observed_generation: number;
}

export interface AdapterStatusCamel {
  adapter: string;
  conditions: AdapterConditionCamel[];
  data: Record<string, unknown>;
  lastUpdated: string;
  metadata?: Record<string, unknown>;
  observedGeneration: number;
}

export interface AuditBreak {
  problem: string;
  sequence: number;
}

export interface AuditEntry {
  action: string;
  actor: string;
  after?: string;
  at: string;
  before?: string;
  hash: string;
  id: string;
  kind: string;
  name: string;
  previous: string;
  reason?: string;
  request_id: string;
  revision: number;
  sequence: number;
  tenant: string;
  via: string;
}

export interface AuditList {
  items: AuditEntry[];
  kind: string;
  next?: number;
}

export interface AuditVerification {
  broken?: AuditBreak;
  entries: number;
  first?: number;
  last?: number;
}

export interface BacktestError {
  count: number;
  message: string;
}

export interface BacktestHit {
  at: string;
  event: string;
  node_id: string;
  rule: string;
  severity: Severity;
}

export interface BacktestReport {
  both: number;
  errors?: BacktestError[];
  events: number;
  from?: string;
  kind: string;
  only_current: BacktestHit[];
  only_new: BacktestHit[];
  to?: string;
}

export interface BacktestRequest {
  policy: PolicyPut;
  since?: string;
}

export interface BlockedTermination {
  guard: string;
  message: string;
  since: string;
}

export interface Brakes {
  amnesty?: string;
  breakers: Breaker[];
  budgets: BudgetUse[];
  isolated?: string;
  kind: string;
  pauses: Pause[];
}

export interface Breaker {
  half_open?: HalfOpen;
  last_bad_at: string;
  opened_at: string;
  reason: string;
  revision: number;
  scope: string;
}

export interface BudgetImpact {
  allowed: number;
  asked: number;
  exceeded: boolean;
  frees?: string;
  message: string;
  name: string;
  out?: OutOfService[];
  scope: string;
  total: number;
  used: number;
}

export interface BudgetUse {
  allowed: number;
  out?: number;
  scope: string;
  total: number;
  used: number;
}

export interface BuyingPaused {
  message: string;
  reason: string;
  since: string;
}

export interface Catalog {
  nodes_max: number;
  providers: Record<string, CatalogProvider>;
}

export interface CatalogMachine {
  cpus: number;
  gpus?: number;
}

export interface CatalogProvider {
  display: string;
  machine_types: Record<string, CatalogMachine>;
  regions: string[];
}

export interface ClusterCreate {
  kind?: 'Cluster';
  labels?: Record<string, string>;
  name: string;
  spec: Record<string, unknown>;
}

export interface Command {
  acknowledged_at?: string;
  automatic: boolean;
  budgets?: BudgetImpact[];
  by: string;
  deadline?: string;
  ended_at?: string;
  expires_at: string;
  href: string;
  id: string;
  issued_at: string;
  kind: string;
  message?: string;
  node_id: string;
  outcome?: CommandOutcome;
  parameters?: Record<string, string>;
  progress?: number;
  reason?: string;
  result?: unknown;
  revision: number;
  state: CommandState;
  type: CommandType;
  warnings?: string[];
}

export interface CommandBatch {
  budgets: BudgetImpact[];
  commands: Command[];
  kind: string;
  refused: CommandRefusal[];
  warnings: string[];
}

export interface CommandBatchCreate {
  drain_for_seconds?: number;
  nodes: string[];
  over_budget?: boolean;
  parameters?: Record<string, string>;
  reason?: string;
  type: CommandType;
}

export interface CommandCreate {
  drain_for_seconds?: number;
  over_budget?: boolean;
  parameters?: Record<string, string>;
  reason?: string;
  type: CommandType;
}

export interface CommandList {
  items: Command[];
  kind: string;
  page: number;
  revision: number;
  size: number;
  total: number;
}

export type CommandOutcome = 'Completed' | 'Drained' | 'Forced' | 'TimedOut' | 'Failed' | 'Expired' | 'Cancelled';

export interface CommandRefusal {
  node_id: string;
  problem: Problem;
}

export type CommandState = 'pending' | 'acknowledged' | 'completed' | 'failed' | 'expired' | 'cancelled';

export interface CommandStep {
  by: string;
  id: string;
  outcome?: CommandOutcome;
  state: CommandState;
  type: CommandType;
}

export type CommandType = 'CORDON' | 'DRAIN' | 'RUN_DIAGNOSTIC' | 'TERMINATE' | 'UNCORDON';

export interface Condition {
  created_time: string;
  last_transition_time: string;
  last_updated_time: string;
  message?: string;
  observed_generation: number;
  reason: string;
  status: Tri;
  type: string;
}

export type Cure = 'diagnose' | 'reboot' | 'replace';

export interface DeadLetter {
  adapter: string;
  cause: string;
  event: Record<string, unknown>;
  sequence: number;
}

export interface DeadLetterList {
  items: DeadLetter[];
  kind: string;
  next?: number;
}

export interface Departure {
  deadline: string;
  message: string;
  reason: string;
  since: string;
}

export interface Duty {
  automatic?: boolean;
  by?: string;
  command_id?: string;
  deadline?: string;
  drained?: boolean;
  reason?: string;
  since?: string;
  state: DutyState;
}

export type DutyState = 'Active' | 'Cordoned' | 'Draining' | 'Terminated';

export interface ExplainRequest {
  event: NodeEvent;
  node_id?: string;
  policy?: PolicyPut;
}

export type Explanation = Verdict & {
  kind: string;
};

export interface ExternalState {
  failures: number;
  retry_at?: string;
  told: string;
}

export interface FieldProblem {
  constraint?: string;
  field: string;
  message: string;
  value?: unknown;
}

export interface Finding {
  count: number;
  ends: FindingEnd;
  ends_at?: string;
  ends_when?: string;
  evidence?: string;
  first_seen: string;
  gpu?: string;
  key: string;
  last_seen: string;
  message: string;
  node_id: string;
  policy?: string;
  policy_version?: number;
  pool?: string;
  rule: string;
  severity?: Severity;
}

export type FindingEnd = 'WhenCheckPasses' | 'AtTime' | 'AtReboot' | 'WhenOver' | 'WhenReplaced' | 'WhenGpusReturn';

export interface FindingList {
  items: Finding[];
  kind: string;
  page: number;
  revision: number;
  size: number;
  total: number;
}

export interface Flaps {
  count: number;
  hold_until?: string;
  recovered_at?: string;
}

export type FleetEvent = {
  at: number;
  more: boolean;
  nodes: NodeGpus[];
  revision: number;
  type: 'SNAPSHOT';
} | {
  at: number;
  gone: string[];
  nodes: NodeGpus[];
  revision: number;
  samples: NodeSamples[];
  type: 'SAMPLES';
} | {
  type: 'BYE';
};

export interface FleetGpuList {
  items: NodeGpus[];
  kind: string;
  page: number;
  revision: number;
  size: number;
  total: number;
}

export interface FleetServerSentEvent {
  data?: string;
  event?: 'SNAPSHOT' | 'SAMPLES' | 'BYE';
  retry?: number;
}

export interface ForceDelete {
  reason: string;
}

export interface Gpu {
  cuda_version?: string;
  driver_version?: string;
  ecc_corrected?: number;
  ecc_uncorrected?: number;
  index: number;
  memory_total?: number;
  memory_used?: number;
  name?: string;
  pci_bus_id?: string;
  power?: number;
  serial?: string;
  temperature?: number;
  utilization?: number;
  uuid?: string;
}

export interface GpuHistory {
  ecc_corrected: (number | null)[];
  ecc_uncorrected: (number | null)[];
  index: number;
  memory_percent: (number | null)[];
  power: (number | null)[];
  temperature: (number | null)[];
  utilization: (number | null)[];
}

export interface GpuMeasures {
  at: number;
  ce: (number | null)[];
  m: (number | null)[];
  t: (number | null)[];
  u: (number | null)[];
  ue: (number | null)[];
  w: (number | null)[];
}

export interface HalfOpen {
  allowed: number;
  since: string;
  taken: number;
}

export interface HealthCheck {
  details?: Record<string, string>;
  message?: string;
  name: string;
  since: string;
  status: HealthStatus;
}

export type HealthStatus = 'UNKNOWN' | 'HEALTHY' | 'DEGRADED' | 'UNHEALTHY';

export interface HeldAction {
  action: string;
  guard: string;
  reason: string;
  since: string;
}

export interface HistoryEntry {
  at: string;
  discarded?: string;
  generation: number;
  report: AdapterStatus;
  sequence: number;
}

export interface InVain {
  at: string;
  cost?: number;
  fate: string;
  instance_id: string;
  message: string;
  number: number;
}

export interface Incarnation {
  cause?: string;
  number: number;
  since?: string;
}

export interface Instance {
  blocked?: BlockedTermination;
  calls: number;
  console?: string;
  cost_per_hour?: number;
  departure?: Departure;
  href: string;
  id: string;
  image?: string;
  kind: string;
  machine_id?: string;
  machine_type: string;
  node_id?: string;
  number: number;
  ordered_at: string;
  overdue?: boolean;
  pool: string;
  pool_id: string;
  provider: string;
  reason?: string;
  region: string;
  replaced_by?: string;
  replaces?: string;
  retry_at?: string;
  revision: number;
  since: string;
  spot: boolean;
  state: InstanceState;
  status_message: string;
  tenant: string;
  tried?: Tried[];
  why: string;
  zone?: string;
}

export interface InstanceAdopt {
  cluster?: string;
  machine_id: string;
  nodepool: string;
  provider: string;
  reason: string;
}

export interface InstanceList {
  cost_per_hour?: number;
  items: InstanceView[];
  kind: string;
  page: number;
  revision: number;
  size: number;
  total: number;
  unpriced?: number;
}

export type InstanceState = 'Provisioning' | 'AwaitingNode' | 'Running' | 'Terminating' | 'Terminated' | 'Failed';

export interface InstanceTerminate {
  force?: boolean;
  over_budget?: boolean;
  reason: string;
}

export type InstanceView = Instance;

export type Kind = 'Cluster' | 'NodePool';

export interface Ledger {
  items: LedgerEntry[];
  kind: string;
  next?: number;
}

export interface LedgerEntry {
  action?: string;
  at: string;
  budget?: string;
  command?: CommandStep;
  event?: NodeEvent;
  finding?: string;
  findings?: string[];
  from?: string;
  held_by?: string;
  message: string;
  node_id: string;
  ok?: boolean;
  revision: number;
  sequence: number;
  subject?: string;
  to?: string;
  type: string;
  verdict?: Verdict;
}

export type Liveness = 'Fresh' | 'Suspect' | 'Unreachable';

export interface Me {
  kind: string;
  may: Permissions;
  role: string;
  server: ServerFacts;
  subject: string;
  teams: string[];
  tenant: string;
  via: string;
}

export interface MetricsHistory {
  gpus?: GpuHistory[];
  items: MetricsPoint[];
  kind: string;
  node_id: string;
}

export interface MetricsPoint {
  at: string;
  cpu_percent?: number;
  gpu_percent?: number;
  memory_percent?: number;
  temperature?: number;
}

export interface Node {
  agent?: string;
  attached: boolean;
  boot_id?: string;
  checks?: HealthCheck[];
  duty: Duty;
  external: ExternalState;
  external_ip?: string;
  findings?: Finding[];
  flags?: NodeFlag[];
  flaps?: Flaps;
  gpus: Gpu[];
  health: NodeHealth;
  health_status: HealthStatus;
  held?: HeldAction;
  hostname?: string;
  href: string;
  id: string;
  instance_type?: string;
  internal_ip?: string;
  joined_at: string;
  kernel_version?: string;
  kind: string;
  labels?: Record<string, string>;
  last_heartbeat?: string;
  last_poll?: string;
  last_report?: string;
  liveness: Liveness;
  liveness_since: string;
  machine_id?: string;
  metrics?: NodeMetrics;
  pool?: string;
  provider?: string;
  region?: string;
  registered_at: string;
  revision: number;
  status: NodeStatus;
  tenant: string;
  zone?: string;
}

export interface NodeEvent {
  count?: number;
  event_type: 'unknown' | 'xid' | 'thermal' | 'power' | 'memory' | 'nvlink' | 'pcie' | 'driver_error' | 'ecc_sbe' | 'ecc_dbe' | 'sxid' | 'host';
  gpu_index: number;
  gpu_serial?: string;
  gpu_uuid?: string;
  message?: string;
  metrics?: Record<string, boolean | number | string>;
  node_time?: string;
  raw?: string;
  recovery_action?: number;
  system?: 'DCGM_HEALTH_WATCH_UNKNOWN' | 'DCGM_HEALTH_WATCH_PCIE' | 'DCGM_HEALTH_WATCH_NVLINK' | 'DCGM_HEALTH_WATCH_PMU' | 'DCGM_HEALTH_WATCH_MCU' | 'DCGM_HEALTH_WATCH_MEM' | 'DCGM_HEALTH_WATCH_SM' | 'DCGM_HEALTH_WATCH_INFOROM' | 'DCGM_HEALTH_WATCH_THERMAL' | 'DCGM_HEALTH_WATCH_POWER' | 'DCGM_HEALTH_WATCH_DRIVER' | 'DCGM_HEALTH_WATCH_NVSWITCH';
}

export interface NodeFlag {
  message: string;
  since: string;
  type: string;
}

export type NodeGpus = Partial<GpuMeasures> & {
  bad?: number[];
  cluster?: string;
  gpus: number;
  health: HealthStatus;
  id: string;
  labels?: Record<string, string>;
  liveness: Liveness;
  machine_type?: string;
  memory_total: number;
  model?: string;
  pool?: string;
  provider?: string;
  rack?: string;
  region?: string;
  revision: number;
  status: NodeStatus;
  warn?: number[];
  zone?: string;
};

export interface NodeHealth {
  message?: string;
  reason?: string;
  since: string;
  status: HealthStatus;
}

export interface NodeList {
  items: NodeView[];
  kind: string;
  page: number;
  revision: number;
  size: number;
  total: number;
}

export interface NodeMetrics {
  cpu_percent?: number;
  memory_percent?: number;
  pending_jobs?: number;
  queue_depth?: number;
}

export interface NodePoolCreate {
  kind?: 'NodePool';
  labels?: Record<string, string>;
  name: string;
  spec: {
    nodeCount?: number;
  };
}

export type NodeSamples = GpuMeasures & {
  id: string;
};

export type NodeStatus = 'UNKNOWN' | 'ACTIVE' | 'CORDONED' | 'DRAINING' | 'UNHEALTHY' | 'TERMINATED';

export type NodeView = Node;

export interface Orphan {
  cost_per_hour?: number;
  first_seen: string;
  instance_id?: string;
  machine_id: string;
  machine_type: string;
  name: string;
  pool_id?: string;
  provider: string;
  reap?: Reap;
  region: string;
  revision: number;
  zone?: string;
}

export interface OrphanList {
  cost_per_hour: number;
  items: Orphan[];
  kind: string;
  unpriced?: number;
}

export interface OutOfService {
  by: string;
  how: string;
  node_id: string;
  since: string;
}

export interface OwnerReference {
  href: string;
  id: string;
  kind: Kind;
}

export interface PartAdvice {
  at: string;
  policy: string;
  reason: string;
  target?: number;
}

export interface Pause {
  at: string;
  by: string;
  pool?: string;
  pool_id?: string;
  reason: string;
  revision: number;
}

export interface Permissions {
  administer: boolean;
  force: boolean;
  write: boolean;
}

export interface PlaceBackoff {
  failures: number;
  message: string;
  place: string;
  until: string;
}

export type Policy = PolicyPut & {
  created_at: string;
  created_by: string;
  href: string;
  kind: string;
  name: string;
  revision: number;
  updated_at: string;
  updated_by: string;
  version: number;
  warnings?: string[];
};

export interface PolicyList {
  items: Policy[];
  kind: string;
}

export interface PolicyPut {
  description?: string;
  pools?: string[];
  rules: Rule[];
}

export interface PoolExplanation {
  advice?: SizeAdvice;
  asked: number;
  at: string;
  cost_per_hour: number;
  decisions?: SizeDecision[];
  in_vain?: InVain[];
  instances: Record<string, number>;
  kind: string;
  members: Instance[];
  name: string;
  orphans?: number;
  paused?: BuyingPaused;
  places?: PlaceBackoff[];
  pool_id: string;
  report?: PoolReport;
  stale_in_a_row: number;
  summary: string;
  target?: number;
  unpriced?: number;
  update_failed?: UpdateFailed;
}

export interface PoolHistory {
  items: PoolSample[];
  kind: string;
  pool_id: string;
}

export interface PoolReport {
  available: string;
  guidance?: string;
  message: string;
  reason: string;
}

export interface PoolResume {
  reason: string;
  rollback?: boolean;
}

export interface PoolSample {
  at: string;
  nodes: number;
  pending_jobs?: number;
  queue_depth?: number;
  utilization?: number;
}

export interface Problem {
  budgets?: BudgetImpact[];
  cluster_id?: string;
  code: 'HYPERFLEET-VAL-000' | 'HYPERFLEET-VAL-005' | 'HYPERFLEET-VAL-006' | 'HYPERFLEET-VAL-007' | 'HYPERFLEET-VAL-008' | 'HYPERFLEET-VAL-009' | 'HYPERFLEET-AUT-001' | 'HYPERFLEET-AUT-002' | 'HYPERFLEET-AUT-003' | 'HYPERFLEET-AUZ-001' | 'HYPERFLEET-NTF-000' | 'HYPERFLEET-NTF-001' | 'HYPERFLEET-NTF-002' | 'HYPERFLEET-MTD-001' | 'HYPERFLEET-LMT-003' | 'HYPERFLEET-CNF-001' | 'HYPERFLEET-CNF-002' | 'HYPERFLEET-CNF-003' | 'HYPERFLEET-CNF-004' | 'HYPERFLEET-CNF-005' | 'HYPERFLEET-GON-001' | 'HYPERFLEET-LMT-002' | 'HYPERFLEET-MED-001' | 'HYPERFLEET-LMT-004' | 'HYPERFLEET-INT-001' | 'HYPERFLEET-SVC-001' | 'HYPERFLEET-SVC-003';
  current_revision?: number;
  detail: string;
  error: string;
  errors?: FieldProblem[];
  hint?: string;
  id?: string;
  instance: string;
  message?: string;
  node_id?: string;
  nodepool_id?: string;
  status: number;
  timestamp: string;
  title: string;
  trace_id: string;
  type: string;
}

export interface Provider {
  configured: boolean;
  cost_per_hour: number;
  frozen?: ProviderFrozen;
  instances: Record<string, number>;
  listed_at?: string;
  name: string;
  orphans: number;
  paused?: ProviderPaused;
  unpriced?: number;
}

export interface ProviderFrozen {
  expected: number;
  found: number;
  message: string;
  since: string;
}

export interface ProviderList {
  items: Provider[];
  kind: string;
}

export interface ProviderPaused {
  failures: number;
  message: string;
  retry_at: string;
  since: string;
}

export interface Reap {
  at: string;
  by: string;
  reason: string;
}

export interface Recovery {
  buy: number;
  cause: string;
  drain: number;
  pool: string;
  pool_id: string;
  revision: number;
  since: string;
  steps: RecoveryStep[];
  terminate: number;
  waits_for?: string;
}

export interface RecoveryList {
  incarnation: Incarnation;
  items: Recovery[];
  kind: string;
}

export interface RecoveryStep {
  action: string;
  reason: string;
  target: string;
}

export interface Released {
  released: boolean;
}

export interface ReportCondition {
  message?: string;
  reason?: string;
  status: Tri;
  type: string;
}

export interface Resource {
  cluster_id?: string;
  created_at: string;
  created_by: string;
  created_time: string;
  deleted_by?: string;
  deleted_time?: string;
  generation: number;
  href: string;
  id: string;
  kind: Kind;
  labels?: Record<string, string>;
  name: string;
  owner_references?: OwnerReference;
  revision: number;
  spec: Record<string, unknown>;
  status: ResourceStatus;
  tenancy?: Record<string, string>;
  uid: string;
  updated_at: string;
  updated_by: string;
  updated_time: string;
}

export interface ResourceList {
  items: ResourceView[];
  kind: string;
  page: number;
  revision?: number;
  size: number;
  total: number;
}

export interface ResourcePatch {
  labels?: Record<string, string | null>;
  spec?: Record<string, unknown>;
}

export interface ResourceStatus {
  conditions: Condition[];
  lastTransitionTime: string;
  phase: string;
}

export type ResourceView = Resource;

export interface Rule {
  condition: string;
  description?: string;
  lasts?: string;
  name: string;
  priority?: number;
  result: Severity;
}

export interface SafetyReason {
  reason: string;
}

export interface ServerFacts {
  authentication: boolean;
  build_time: string;
  demo: boolean;
  version: string;
}

export interface ServerSentEvent {
  data?: string;
  event?: WatchKind;
  id?: string;
  retry?: number;
}

export interface ServiceInfo {
  build_time: string;
  href: string;
  id: string;
  kind: string;
  version: string;
}

export type Severity = 'healthy' | 'degraded' | 'unhealthy';

export interface SimulateRequest {
  autoscaling?: Record<string, unknown>;
  boot_s?: number;
  history?: PoolSample[];
  max?: number;
  min?: number;
  nodes?: number;
}

export interface Simulation {
  comparison: string;
  fixed: SimulationSummary;
  kind: string;
  pool_id: string;
  refused?: string[];
  samples: number;
  steps: SimulationStep[];
  summary: SimulationSummary;
}

export interface SimulationStep {
  at: string;
  need?: number;
  ready: number;
  reason: string;
  target: number;
  wanted: number;
}

export interface SimulationSummary {
  changes: number;
  minutes_below_need: number;
  node_hours: number;
  nodes_max: number;
}

export interface SizeAdvice {
  from: number;
  next?: string;
  parts?: PartAdvice[];
  policy: string;
  sentence: string;
  target: number;
  wanted: number;
}

export interface SizeDecision {
  at: string;
  from: number;
  reason: string;
  to: number;
}

export interface StatusHistory {
  items: HistoryEntry[];
  kind: string;
  next?: number;
}

export interface StatusLine {
  adapter_name: string;
  cluster_id: string;
  created_at: string;
  id: string;
  last_transition_time: string;
  message: string;
  nodepool_id?: string;
  phase: AdapterPhase;
}

export interface StatusList {
  adapterStatuses?: AdapterStatusCamel[];
  clusterId: string;
  cluster_id: string;
  href: string;
  id: string;
  items?: AdapterStatus[];
  kind: string;
  lastUpdated: string;
  nodepoolId?: string;
  nodepool_id?: string;
  page: number;
  size: number;
  statuses?: StatusLine[];
  total: number;
  type: string;
}

export interface StatusReport {
  adapter: string;
  conditions: unknown & unknown & unknown;
  data?: Record<string, unknown>;
  metadata?: Record<string, unknown>;
  observed_generation: number;
  observed_time?: string;
}

export type Tri = 'True' | 'False' | 'Unknown';

export interface Tried {
  at: string;
  because: string;
  cure: Cure;
  outcome?: string;
}

export interface UpdateFailed {
  instance_id: string;
  message: string;
  rollback_generation?: number;
  since: string;
}

export interface Verdict {
  error?: string;
  inputs?: string[];
  lasts_seconds?: number;
  message?: string;
  policy: string;
  policy_version: number;
  rule: string;
  severity?: Severity;
}

export interface WatchEvent {
  object?: Record<string, unknown>;
  revision: number;
  type: WatchKind;
}

export type WatchKind = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

export interface Why {
  kind: string;
  next?: string[];
  node_id: string;
  status: NodeStatus;
  steps: WhyStep[];
  summary: string;
}

export interface WhyStep {
  at: string;
  evidence?: string[];
  message: string;
  revision: number;
  type: string;
}
