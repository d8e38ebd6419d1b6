//! Asks hosts what they are, and says what follows from answers and from silence.

use super::line::{As, Said, Silence, last_line};
use super::memory::Remembered;
use super::survey::{Survey, Tenancy};
use super::{ASK_MAX, Host, Hosts, TURN_MAX, door, refused, script, unreadable};
use crate::aside::aside;
use argosy_core::machine::{Machine, Order, Trouble};
use futures_util::future::join_all;
use uuid::Uuid;

/// What one host answered.
pub(super) struct Answer<'a> {
    pub(super) host: &'a Host,
    pub(super) survey: Result<Survey, Silence>,
    /// What was known of it before.
    pub(super) before: Remembered,
}

impl Hosts {
    /// Asks hosts what they are, all at once.
    pub(super) async fn ask<'a>(
        &'a self,
        hosts: Vec<&'a Host>,
    ) -> Result<Vec<Answer<'a>>, Trouble> {
        let names: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        let memory = self.memory.clone();
        let before = aside(move || names.iter().map(|name| memory.of(name)).collect()).await;
        let before: Vec<Remembered> = before.map_err(unreadable)?;
        let script = script::survey(&self.layout);
        let surveys = join_all(hosts.iter().map(|host| self.survey(host, &script))).await;
        let answers = hosts.into_iter().zip(surveys).zip(before);
        let answers =
            answers.map(|((host, survey), before)| self.settle(Answer { host, survey, before }));
        let answers: Vec<Answer<'a>> = join_all(answers).await;
        let said: Vec<(Remembered, Tenancy)> = answers
            .iter()
            .filter_map(|Answer { survey, before, .. }| {
                Some((before.clone(), survey.as_ref().ok()?.tenancy.clone()))
            })
            .collect();
        let memory = self.memory.clone();
        let kept = aside(move || {
            said.iter().try_for_each(|(before, tenancy)| memory.said(before, tenancy))
        });
        kept.await.map_err(unreadable)?;
        Ok(answers)
    }

    /// Finds out what became of an attempt that did not come back, by calling it off: after that the host says
    /// for certain whether it is claimed.
    async fn settle<'a>(&self, answer: Answer<'a>) -> Answer<'a> {
        let Answer { host, survey: Ok(survey), before } = &answer else { return answer };
        let Some(asked) = &before.asked else { return answer };
        let answered = survey.claim_of(asked.token).is_some();
        // Somebody here waits for it.
        if answered || self.desk().reserved.contains(&host.name) {
            return answer;
        }
        let off = script::call_off(asked, &self.layout);
        let called = self.caller.script(&door(host), As::Root, &off, ASK_MAX).await;
        let survey = match called {
            Ok(said) if said.code == 0 => self.survey(host, &script::survey(&self.layout)).await,
            Ok(said) => Err(Silence::Broken(refused(host, &said).to_string())),
            Err(silence) => Err(silence),
        };
        let mut answer = Answer { host, survey, before: before.clone() };
        if let Ok(survey) = &answer.survey
            && self.answered(host, Some(survey.tenancy.clone())).await.is_ok()
        {
            answer.before.asked = None;
        }
        answer
    }

    async fn survey(&self, host: &Host, script: &str) -> Result<Survey, Silence> {
        let turn = tokio::time::timeout(TURN_MAX, self.calls.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(Silence::Away("too many hosts do not answer to wait for this one".into()));
        };
        let said = self.caller.script(&door(host), As::Guest, script, ASK_MAX).await;
        let survey = said.and_then(|said| {
            let Said { code, stderr, stdout } = said;
            Survey::parse(&stdout).ok_or_else(|| {
                let why = format!("its answer is not whole ({code}): {}", last_line(&stderr));
                Silence::Broken(why)
            })
        });
        self.desk().answered.insert(host.name.clone(), survey.is_ok());
        survey
    }

    /// The machine of a token among answers; `None` if it is certain that there is none.
    pub(super) fn among(
        &self,
        answers: &[Answer<'_>],
        token: Uuid,
    ) -> Result<Option<Machine>, Trouble> {
        let mut doubt = None;
        for Answer { host, survey, before } in answers {
            let asked = before.asked.as_ref().is_some_and(|claim| claim.token == token);
            match survey {
                Ok(survey) => {
                    let shown = survey.machines();
                    let found = shown.into_iter().find(|(claim, _)| claim.token == token);
                    if let Some((claim, state)) = found {
                        return Ok(Some(self.show(host, claim, state)));
                    }
                    let unread = survey.tenancy == Tenancy::Unreadable && before.may_hold(token);
                    if asked || unread {
                        let name = &host.name;
                        let why = format!("{name} does not say yet whether it was claimed");
                        doubt = Some(Trouble::Unreachable(why));
                    }
                }
                Err(silence) => {
                    if asked || before.may_hold(token) {
                        doubt = Some(self.silent(host, silence));
                    }
                }
            }
        }
        let nobody = answers.iter().all(|answer| answer.survey.is_err());
        if nobody && let Some(Answer { host, survey: Err(silence), .. }) = answers.first() {
            doubt.get_or_insert_with(|| self.silent(host, silence));
        }
        doubt.map_or(Ok(None), Err)
    }

    /// Why no host can be had: what all of them have in common, or what each says.
    pub(super) fn none_free(
        &self,
        order: &Order,
        answers: &[Answer<'_>],
        tried: &[Trouble],
    ) -> Trouble {
        let silences: Vec<Trouble> = answers
            .iter()
            .filter_map(|Answer { host, survey, .. }| {
                Some(self.silent(host, survey.as_ref().err()?))
            })
            .chain(tried.iter().cloned())
            .collect();
        let alike = |trouble: &&Trouble| {
            let first = silences.first().map(std::mem::discriminant);
            Some(std::mem::discriminant(*trouble)) == first
        };
        if let Some(trouble) = silences.first()
            && answers.len() <= silences.len()
            && silences.iter().all(|trouble| alike(&trouble))
        {
            return trouble.clone();
        }
        let count = |test: fn(&Tenancy) -> bool| {
            let said = answers.iter().filter_map(|answer| answer.survey.as_ref().ok());
            said.filter(|survey| test(&survey.tenancy)).count()
        };
        let claimed = count(|tenancy| matches!(tenancy, Tenancy::Claimed(_)));
        let foreign = count(|tenancy| matches!(tenancy, Tenancy::Foreign | Tenancy::Unreadable));
        let mut message = format!(
            "none of the {} hosts of type {} is free: {claimed} are claimed, {foreign} have an agent \
             that is not ours to touch, {} cannot be used",
            answers.len(),
            order.machine_type,
            silences.len(),
        );
        for trouble in silences.iter().take(3) {
            message.push_str("; ");
            message.push_str(&trouble.to_string());
        }
        Trouble::Capacity { code: "NoFreeHost".to_owned(), message }
    }
}
