//! The resolvers of OmegaConf and Hydra: functions in interpolations, such as `oc.env`.

use super::super::overrides::literal;
use super::super::suggest::nearest;
use super::super::tree::{Node, brief};
use super::{Evaluation, not_expected, python_text};
use crate::problem::{Location, Problem};

/// Names of the resolvers.
const RESOLVERS: &[&str] = &["oc.env", "oc.decode", "oc.select", "now", "hydra"];

impl Evaluation<'_> {
    /// Calls a resolver.
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &[Node],
        expression: &str,
        location: &Location,
    ) -> Result<Node, Problem> {
        let expression = brief(expression);
        let text = |text: String| Node::scalar(text, true, location.clone());
        let null = || Node::scalar("null", false, location.clone());
        let first = arguments.first().map(python_text).transpose()?;
        let too_many = || {
            Err(Problem::new(format!("`{expression}` has too many arguments"))
                .hint("put text with commas in quotes"))
        };
        let Some(first) = first else {
            let known =
                if RESOLVERS.contains(&name) { "its argument is missing" } else { "unknown" };
            return Err(Problem::new(format!("`{expression}`: {known}")).hint(resolvers_hint(name)));
        };
        match (name, arguments) {
            ("oc.env", [_] | [_, _]) => match (self.variable(&first), arguments) {
                (Some(value), _) => Ok(text(value)),
                (None, [_, default]) if default.is_null() => Ok(null()),
                (None, [_, default]) => python_text(default).map(text),
                (None, _) => {
                    let message =
                        format!("the environment variable `{}` is not set", brief(&first));
                    let default = format!(
                        "set it, or give a default: `${{oc.env:{},DEFAULT}}`",
                        brief(&first)
                    );
                    Err(Problem::new(message).hint(default))
                }
            },
            ("oc.decode", [encoded]) if encoded.is_null() => Ok(null()),
            ("oc.decode", [_]) if first.trim().is_empty() => Ok(text(first)),
            ("oc.decode", [_]) => literal(first.trim())
                .filter(|_| !first.contains("${"))
                .ok_or_else(|| not_expected(&first)),
            ("oc.select", [_] | [_, _]) => {
                let keys: Vec<String> = first.split('.').map(str::to_string).collect();
                let found = self.lookup(&keys)?.filter(|node| !node.is_null());
                Ok(found.or(arguments.get(1).cloned()).unwrap_or_else(null))
            }
            ("now", [_]) => self.surroundings.time(&first).map(text).ok_or_else(|| {
                let problem = Problem::new(format!("`{expression}`: not a format of time"));
                problem.hint("write it as for strftime, as in `${now:%Y-%m-%d}`")
            }),
            ("hydra", [_]) => self.surroundings.hydra(&first).map(text).ok_or_else(|| {
                let problem = Problem::new(format!("`{expression}` is not supported"));
                problem
                    .hint("of Hydra's settings there are `hydra:runtime.cwd` and `hydra:job.name`")
            }),
            (name, _) if RESOLVERS.contains(&name) => too_many(),
            _ => {
                Err(Problem::new(format!("`{expression}`: there is no resolver `{}`", brief(name)))
                    .hint(resolvers_hint(name)))
            }
        }
    }

    /// Returns the value of an environment variable. If credentials are made of it, so may be the values that are being evaluated.
    fn variable(&mut self, name: &str) -> Option<String> {
        if self.in_credentials {
            self.private_variables.insert(name.to_string());
        } else if self.private_variables.contains(name) {
            self.private.extend(self.active.iter().cloned());
        }
        self.surroundings.variable(name)
    }
}

fn resolvers_hint(name: &str) -> String {
    match nearest(name, RESOLVERS.iter().copied()) {
        Some(similar) if similar != name => format!("did you mean `{similar}`?"),
        _ if name == "env" => "did you mean `oc.env`?".into(),
        _ => format!("there are `{}`", RESOLVERS.join("`, `")),
    }
}
