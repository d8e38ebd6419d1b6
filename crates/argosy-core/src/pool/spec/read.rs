//! A pool's spec as people write it: every complaint at once, each with what would be right.

use super::{
    Capacity, PROVIDERS_MAX, PoolSpec, ProviderChoice, REGIONS_MAX, Remedy, Replacement, Strategy,
    TYPES_MAX, Unavailable, ZONES_MAX, is_abstract,
};
use crate::autoscale::Autoscaling;
use crate::catalog::{self, Catalog};
use crate::field::{Constraint, FieldError, QUOTE_LEN_MAX, quotable};
use crate::instance::Cure;
use crate::label::{Labels, is_value};
use crate::nearest::nearest;
use crate::resource::Spec;
use crate::span::{self, Written};
use crate::window::Windows;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;

/// The members of a pool's spec that are ours.
const OURS: [&str; 24] = [
    "nodeCount",
    "minNodes",
    "maxNodes",
    "machineType",
    "machineTypes",
    "zones",
    "capacity",
    "image",
    "provider",
    "region",
    "providers",
    "strategy",
    "maxHourlyCost",
    "maintenance",
    "autoscaling",
    "remedy",
    "cures",
    "drainFor",
    "maxUnavailable",
    "minAvailable",
    "minReady",
    "replacement",
    "nodeLabels",
    "platform",
];

/// The members of one of `providers`.
const OURS_OF_PROVIDER: [&str; 5] = ["name", "priority", "weight", "regions", "machineType"];

/// The longest image: those of GCP are URLs.
const IMAGE_LEN_MAX: usize = 256;

/// How many members that are nearly ours are complained about: nobody reads more.
const SLIPS_MAX: usize = 8;

/// How long a drain may take.
const DRAIN_MIN: SignedDuration = SignedDuration::from_secs(1);
/// See `DRAIN_MIN`; as long as a command to drain may.
const DRAIN_MAX: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The longest `minReady`: an update of ten nodes would take a week and a half.
const MIN_READY_MAX: SignedDuration = SignedDuration::from_hours(24);

/// The most nodes of a round that go to one provider.
const WEIGHT_MAX: u32 = 100;
/// The largest priority number.
const PRIORITY_MAX: u32 = 1_000_000;

pub(super) fn read(
    spec: &Spec,
    provider: Option<&str>,
    region: Option<&str>,
    catalog: &Catalog,
) -> Result<PoolSpec, Vec<FieldError>> {
    let mut reader = Reader { spec, prefix: "spec".to_owned(), errors: Vec::new() };
    let read = reader.pool(provider, region, catalog);
    reader.slips(&OURS);
    if reader.errors.is_empty() { Ok(read) } else { Err(reader.errors) }
}

/// Reads the members of one object, and keeps what is wrong with them.
struct Reader<'a> {
    spec: &'a Spec,
    /// Where the object is: `spec`, `spec.providers[0]`.
    prefix: String,
    errors: Vec<FieldError>,
}

impl<'a> Reader<'a> {
    fn pool(
        &mut self,
        provider: Option<&str>,
        region: Option<&str>,
        catalog: &Catalog,
    ) -> PoolSpec {
        let nodes_given = self.keep(catalog.node_count(self.spec.get("nodeCount"))).flatten();
        let providers = self.providers(provider, region, catalog);
        let types = self.types(&providers, catalog);
        let (nodes, min, max) = self.bounds(nodes_given, catalog.nodes_max);
        let min_available = self.whole("minAvailable", 0, catalog.nodes_max).unwrap_or(0);
        if nodes < min_available {
            let message = format!(
                "spec.minAvailable ({min_available}) is larger than spec.nodeCount ({nodes})"
            );
            self.complain("minAvailable", Constraint::Max, message);
        }
        PoolSpec {
            nodes,
            min,
            max,
            types,
            zones: self.names("zones", ZONES_MAX),
            capacity: self.word(
                "capacity",
                &[
                    ("on-demand", Capacity::OnDemand),
                    ("spot", Capacity::Spot),
                    ("spot-preferred", Capacity::SpotPreferred),
                ],
            ),
            image: self.image(),
            providers,
            strategy: self.word(
                "strategy",
                &[
                    ("priority", Strategy::Priority),
                    ("cost", Strategy::Cost),
                    ("round-robin", Strategy::RoundRobin),
                    ("availability", Strategy::Availability),
                ],
            ),
            max_hourly_cost: self.cost(),
            maintenance: self.maintenance(),
            autoscaling: self.autoscaling(),
            remedy: self.word(
                "remedy",
                &[
                    ("observe", Remedy::Observe),
                    ("cordon", Remedy::Cordon),
                    ("drain", Remedy::Drain),
                    ("replace", Remedy::Replace),
                ],
            ),
            cures: self.cures(),
            drain_for: self.drain_for(),
            max_unavailable: self.max_unavailable(catalog.nodes_max),
            min_available,
            min_ready: self.min_ready(),
            replacement: self
                .word("replacement", &[("auto", Replacement::Auto), ("surge", Replacement::Surge)]),
            labels: self.labels(),
        }
    }

    fn keep<T>(&mut self, read: Result<T, FieldError>) -> Option<T> {
        read.map_err(|error| self.errors.push(error)).ok()
    }

    fn field(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    fn complain(&mut self, name: &str, constraint: Constraint, message: String) {
        self.errors.push(FieldError::new(self.field(name), constraint, message));
    }

    fn wrong_type(&mut self, name: &str, wanted: &str, sent: &Value) {
        self.errors.push(FieldError::wrong_type(self.field(name), wanted, sent));
    }

    fn text(&mut self, name: &str) -> Option<&'a str> {
        let read = catalog::text(&self.field(name), self.spec.get(name));
        self.keep(read).flatten()
    }

    fn whole(&mut self, name: &str, min: u32, max: u32) -> Option<u32> {
        let value = self.spec.get(name)?;
        let field = self.field(name);
        let number = self.keep(catalog::whole_number(&field, value))?;
        let constraint = match u32::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => return Some(number),
            Ok(number) if max < number => Constraint::Max,
            Ok(_) => Constraint::Min,
            Err(_) if 0 < number => Constraint::Max,
            Err(_) => Constraint::Min,
        };
        let message = format!("{field} must be from {min} to {max}, not {number}");
        self.errors.push(FieldError::new(field, constraint, message).with_value(value.clone()));
        None
    }

    /// One of a few words; the default if it is not there, or not one of them.
    fn word<T: Copy + Default>(&mut self, name: &str, words: &[(&str, T)]) -> T {
        let Some(sent) = self.text(name) else { return T::default() };
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == sent) {
            return *meant;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let error = unknown_word(self.field(name), sent, &known);
        self.errors.push(error);
        T::default()
    }

    /// A list of names, each in the form of a label's value: what a provider calls its places and types.
    fn names(&mut self, name: &str, most: usize) -> Vec<String> {
        let Some(value) = self.spec.get(name) else { return Vec::new() };
        let Value::Array(values) = value else {
            self.wrong_type(name, "a list of strings", value);
            return Vec::new();
        };
        if most < values.len() {
            let message = format!(
                "{} has {} entries; at most {most} are allowed",
                self.field(name),
                values.len()
            );
            self.complain(name, Constraint::Max, message);
            return Vec::new();
        }
        let mut names: Vec<String> = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let entry = format!("{name}[{index}]");
            let Value::String(text) = value else {
                self.wrong_type(&entry, "a string", value);
                continue;
            };
            if self.is_name(&entry, text) {
                if names.contains(text) {
                    let message = format!("{} is there twice: {text}", self.field(&entry));
                    self.complain(&entry, Constraint::Unique, message);
                } else {
                    names.push(text.clone());
                }
            }
        }
        names
    }

    fn is_name(&mut self, name: &str, text: &str) -> bool {
        let fine = !text.is_empty() && is_value(text);
        if !fine {
            let message = format!(
                "{} must be a name of at most 63 letters, digits, `-`, `_` and `.`, not '{}'",
                self.field(name),
                quotable(text)
            );
            self.complain(name, Constraint::Pattern, message);
        }
        fine
    }

    fn bounds(&mut self, nodes: Option<u32>, most: u32) -> (u32, u32, u32) {
        let min_given = self.whole("minNodes", 0, most);
        let max_given = self.whole("maxNodes", 1, most);
        let (min, max) = (min_given.unwrap_or(0), max_given.unwrap_or(most));
        if max < min {
            let message = format!("spec.minNodes ({min}) is larger than spec.maxNodes ({max})");
            self.complain("minNodes", Constraint::Max, message);
            return (nodes.unwrap_or(max), max, max);
        }
        if let Some(nodes) = nodes {
            if max < nodes {
                let message =
                    format!("spec.nodeCount ({nodes}) is larger than spec.maxNodes ({max})");
                self.complain("nodeCount", Constraint::Max, message);
            } else if nodes < min {
                let message =
                    format!("spec.nodeCount ({nodes}) is smaller than spec.minNodes ({min})");
                self.complain("nodeCount", Constraint::Min, message);
            }
        }
        (nodes.unwrap_or_else(|| 1.clamp(min, max)), min, max)
    }

    /// The providers that are named, or the pool's, or the cluster's.
    fn providers(
        &mut self,
        provider: Option<&str>,
        region: Option<&str>,
        catalog: &Catalog,
    ) -> Vec<ProviderChoice> {
        let own = self.text("provider");
        let own_region = self.text("region");
        if let Some(own) = own {
            let known = catalog.check_provider("spec.provider", own);
            self.keep(known);
        }
        let one = own.or(provider).map(|name| ProviderChoice {
            name: name.to_owned(),
            priority: 0,
            weight: 1,
            // The cluster's region is one of the cluster's provider.
            regions: own_region
                .or(region.filter(|_| own.is_none() || own == provider))
                .map(str::to_owned)
                .into_iter()
                .collect(),
            machine_type: None,
        });
        let Some(value) = self.spec.get("providers") else { return one.into_iter().collect() };
        let Value::Array(values) = value else {
            self.wrong_type("providers", "a list of objects", value);
            return Vec::new();
        };
        if PROVIDERS_MAX < values.len() {
            let message = format!(
                "spec.providers has {} entries; at most {PROVIDERS_MAX} are allowed",
                values.len()
            );
            self.complain("providers", Constraint::Max, message);
            return Vec::new();
        }
        let mut chosen: Vec<ProviderChoice> = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let entry = format!("providers[{index}]");
            let Value::Object(object) = value else {
                self.wrong_type(&entry, "an object", value);
                continue;
            };
            let mut reader =
                Reader { spec: object, prefix: self.field(&entry), errors: Vec::new() };
            let choice = reader.provider(catalog);
            reader.slips(&OURS_OF_PROVIDER);
            self.errors.append(&mut reader.errors);
            let Some(choice) = choice else { continue };
            if chosen.iter().any(|other| other.name == choice.name) {
                let message = format!("spec.{entry}.name is there twice: {}", choice.name);
                self.complain(&format!("{entry}.name"), Constraint::Unique, message);
            } else {
                chosen.push(choice);
            }
        }
        if chosen.is_empty() { one.into_iter().collect() } else { chosen }
    }

    fn provider(&mut self, catalog: &Catalog) -> Option<ProviderChoice> {
        if !self.spec.contains_key("name") {
            let message = format!("{} is required", self.field("name"));
            self.complain("name", Constraint::Required, message);
        }
        let name = self.text("name");
        let priority = self.whole("priority", 0, PRIORITY_MAX).unwrap_or(0);
        let weight = self.whole("weight", 1, WEIGHT_MAX).unwrap_or(1);
        let regions = self.names("regions", REGIONS_MAX);
        let machine_type = self.text("machineType");
        let name = name?;
        let field = self.field("name");
        self.keep(catalog.check_provider(&field, name))?;
        if let Some(machine_type) = machine_type {
            self.machine_type("machineType", machine_type, &[name], catalog);
        }
        let machine_type = machine_type.map(str::to_owned);
        Some(ProviderChoice { name: name.to_owned(), priority, weight, regions, machine_type })
    }

    /// `machineType`, and then what may be taken instead.
    fn types(&mut self, providers: &[ProviderChoice], catalog: &Catalog) -> Vec<String> {
        // One with a type of its own does not care for the pool's.
        let open = providers.iter().filter(|choice| choice.machine_type.is_none());
        let open: Vec<&str> = open.map(|choice| choice.name.as_str()).collect();
        let mut types: Vec<String> = Vec::new();
        if let Some(wanted) = self.text("machineType") {
            self.machine_type("machineType", wanted, &open, catalog);
            types.push(wanted.to_owned());
        }
        for (index, wanted) in self.names("machineTypes", TYPES_MAX).into_iter().enumerate() {
            self.machine_type(&format!("machineTypes[{index}]"), &wanted, &open, catalog);
            if !types.contains(&wanted) {
                types.push(wanted);
            }
        }
        types
    }

    /// A type must be known to one of the providers; which of them has it is found out by buying.
    fn machine_type(&mut self, name: &str, wanted: &str, providers: &[&str], catalog: &Catalog) {
        if is_abstract(wanted) {
            return;
        }
        let field = self.field(name);
        let mut complaint = None;
        for provider in providers {
            match catalog.check_machine_type(&field, wanted, provider) {
                Ok(()) => return,
                Err(error) => complaint = complaint.or(Some(error)),
            }
        }
        self.errors.extend(complaint);
    }

    fn image(&mut self) -> String {
        let Some(image) = self.text("image") else { return String::new() };
        if IMAGE_LEN_MAX < image.len() || image.chars().any(char::is_control) {
            let message = format!(
                "spec.image must be a name of at most {IMAGE_LEN_MAX} characters, none of them \
                 invisible"
            );
            self.complain("image", Constraint::Pattern, message);
        }
        image.to_owned()
    }

    fn cost(&mut self) -> Option<f64> {
        let value = self.spec.get("maxHourlyCost")?;
        let Value::Number(number) = value else {
            self.wrong_type("maxHourlyCost", "a number of US dollars", value);
            return None;
        };
        match number.as_f64() {
            Some(cost) if cost.is_finite() && 0.0 <= cost => Some(cost),
            Some(_) | None => {
                let message = format!(
                    "spec.maxHourlyCost must be a number of US dollars per hour that is not \
                     negative, like 120.50, not {number}"
                );
                self.complain("maxHourlyCost", Constraint::Min, message);
                None
            }
        }
    }

    fn maintenance(&mut self) -> Windows {
        let value = match self.spec.get("maintenance") {
            None => return Windows::default(),
            Some(Value::Object(object)) => object,
            Some(value) => {
                self.wrong_type("maintenance", "an object", value);
                return Windows::default();
            }
        };
        let prefix = self.field("maintenance");
        let mut reader = Reader { spec: value, prefix: prefix.clone(), errors: Vec::new() };
        reader.slips(&["windows"]);
        self.errors.append(&mut reader.errors);
        let Some(windows) = value.get("windows") else { return Windows::default() };
        Windows::parse(windows, &format!("{prefix}.windows")).unwrap_or_else(|complaints| {
            self.errors.extend(complaints);
            Windows::default()
        })
    }

    fn autoscaling(&mut self) -> Option<Autoscaling> {
        let value = self.spec.get("autoscaling")?;
        let read = Autoscaling::parse(value, &self.field("autoscaling"));
        read.map_err(|complaints| self.errors.extend(complaints)).ok()
    }

    fn cures(&mut self) -> Vec<Cure> {
        const WORDS: [(&str, Cure); 3] =
            [("diagnose", Cure::Diagnose), ("reboot", Cure::Reboot), ("replace", Cure::Replace)];
        if !self.spec.contains_key("cures") {
            return PoolSpec::default().cures;
        }
        let mut cures = Vec::new();
        for (index, sent) in self.names("cures", WORDS.len()).iter().enumerate() {
            match WORDS.iter().find(|(word, _)| word == sent) {
                Some((_, cure)) => cures.push(*cure),
                None => {
                    let field = self.field(&format!("cures[{index}]"));
                    self.errors.push(unknown_word(field, sent, &WORDS.map(|(word, _)| word)));
                }
            }
        }
        // The ladder has one order: what disturbs least comes first.
        cures.sort_unstable();
        cures
    }

    fn drain_for(&mut self) -> Option<SignedDuration> {
        self.span("drainFor", DRAIN_MIN, DRAIN_MAX)
    }

    fn min_ready(&mut self) -> SignedDuration {
        let read = self.span("minReady", SignedDuration::ZERO, MIN_READY_MAX);
        read.unwrap_or(PoolSpec::default().min_ready)
    }

    /// A time like `90s` or `1h`; `None` if it is not there, or not one that is allowed.
    fn span(
        &mut self,
        name: &str,
        least: SignedDuration,
        most: SignedDuration,
    ) -> Option<SignedDuration> {
        let text = self.text(name)?;
        let field = self.field(name);
        match span::parse(text) {
            Ok(time) if (least..=most).contains(&time) => Some(time),
            Ok(time) => {
                let (least, most, time) = (Written(least), Written(most), Written(time));
                let message = format!("{field} must be from {least} to {most}, not {time}");
                self.complain(name, Constraint::Max, message);
                None
            }
            Err(complaint) => {
                self.complain(name, Constraint::Format, format!("{field}: {complaint}"));
                None
            }
        }
    }

    fn max_unavailable(&mut self, most: u32) -> Unavailable {
        let default = Unavailable::Percent(10.0);
        let percent = match self.spec.get("maxUnavailable") {
            None => return default,
            Some(Value::String(text)) => text.strip_suffix('%'),
            Some(Value::Number(number)) => {
                if number.as_i64() == Some(0) {
                    let message = "spec.maxUnavailable must be at least 1; to leave sick nodes \
                                   alone, set spec.remedy to observe";
                    self.complain("maxUnavailable", Constraint::Min, message.to_owned());
                    return default;
                }
                return self.whole("maxUnavailable", 1, most).map_or(default, Unavailable::Nodes);
            }
            Some(value) => {
                self.wrong_type("maxUnavailable", "a whole number or a percentage", value);
                return default;
            }
        };
        let percent = percent.and_then(|percent| percent.trim().parse::<f64>().ok());
        match percent.filter(|percent| 0.0 < *percent && *percent <= 100.0) {
            Some(percent) => Unavailable::Percent(percent),
            None => {
                let message = "spec.maxUnavailable must be a whole number or a percentage, like 2 \
                               or \"10%\"";
                self.complain("maxUnavailable", Constraint::Format, message.to_owned());
                default
            }
        }
    }

    fn labels(&mut self) -> BTreeMap<String, String> {
        let Some(value) = self.spec.get("nodeLabels") else { return BTreeMap::new() };
        let Value::Object(labels) = value else {
            self.wrong_type("nodeLabels", "an object", value);
            return BTreeMap::new();
        };
        match Labels::parse(labels) {
            Ok(labels) => {
                labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
            }
            Err(complaints) => {
                let ours = |mut complaint: FieldError| {
                    let field = complaint.field.replacen("labels", "spec.nodeLabels", 1);
                    complaint.message = complaint.message.replacen(&complaint.field, &field, 1);
                    FieldError { field, ..complaint }
                };
                self.errors.extend(complaints.into_iter().map(ours));
                BTreeMap::new()
            }
        }
    }

    /// Members that are nearly ours: they would be ignored, and nobody would know why.
    fn slips(&mut self, ours: &[&str]) {
        let plain = |name: &str| name.replace(['_', '-'], "").to_lowercase();
        let strange = self.spec.keys().filter(|key| !ours.contains(&key.as_str()));
        let slips: Vec<FieldError> = strange
            .filter_map(|key| {
                let same = ours.iter().copied().find(|own| plain(own) == plain(key));
                let meant = same.or_else(|| nearest(key, ours.iter().copied()))?;
                let message = format!(
                    "{}.{} is not a member of a node pool's spec. Did you mean {meant}?",
                    self.prefix,
                    quotable(key)
                );
                let field = format!("{}.{}", self.prefix, quotable(key));
                Some(FieldError::new(field, Constraint::Enum, message))
            })
            .take(SLIPS_MAX)
            .collect();
        self.errors.extend(slips);
    }
}

/// The complaint that a word is none of those that are known.
fn unknown_word(field: String, sent: &str, known: &[&str]) -> FieldError {
    let hint = nearest(sent, known.iter().copied())
        .map(|meant| format!(" Did you mean {meant}?"))
        .unwrap_or_default();
    let message =
        format!("{field} must be one of {}, not '{}'.{hint}", known.join(", "), quotable(sent));
    let error = FieldError::new(field, Constraint::Enum, message);
    if sent.len() <= QUOTE_LEN_MAX { error.with_value(sent) } else { error }
}
