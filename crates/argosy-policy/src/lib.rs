//! Compiles and evaluates CEL over core's facts, inside limits on size, depth, cost and stack.
//!
//! What a newcomer gets wrong: a rule never fails what it looks at. What is wrong with its text is
//! found when it is compiled; what goes wrong later is the rule's own answer: Unknown, `PolicyError`.

mod limits;

mod language;

mod expression;

mod facts;

mod condition;

mod health;

pub use condition::{
    ConditionRule, ConditionRuleText, ConditionRules, MappedCondition, Part, PolicyError,
};
pub use health::{HealthPolicy, JUDGEMENT_COST_MAX, Judged, RuleError};
pub use limits::{COMPREHENSIONS_MAX, COST_MAX, DEPTH_MAX, LEN_MAX, NODE_DEPTH_MAX};
