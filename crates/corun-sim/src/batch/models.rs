// SPDX-License-Identifier: GPL-2.0-only
//! The workload models that there are, and which one a case means.

use super::lab::{LAB, LabWorkload};
use super::options::CorunOptions;
use crate::SimError;
use crate::workload::Model;
use corun_case::{Abilities, ParamValue, Workload, WorkloadProblem, hint};
use include_dir::{Dir, include_dir};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The models that come with corun.
static SHIPPED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/models");

/// Workload models by name.
#[derive(Debug, Clone)]
pub struct Models {
    all: BTreeMap<String, (Arc<Model>, String)>,
    /// What the names of those begin with that stand for the lab's workloads.
    lab: String,
}

impl Models {
    /// The models that come with corun.
    pub fn shipped() -> Result<Self, SimError> {
        let mut models = Self {
            all: BTreeMap::new(),
            lab: "lab".to_owned(),
        };
        for file in SHIPPED.files().filter(|f| is_model(f.path())) {
            let text = file.contents_utf8().unwrap_or_default();
            models.add(file.path(), text.to_owned())?;
        }
        Ok(models)
    }

    /// With those of `folder`, which go before others of the same name.
    pub fn with_folder(mut self, folder: &Path) -> Result<Self, SimError> {
        let failed = |path: &Path, e: &std::io::Error| {
            SimError::Scenario(format!("reading models: {}: {e}", path.display()))
        };
        let entries = std::fs::read_dir(folder).map_err(|e| failed(folder, &e))?;
        let mut files = entries
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| failed(folder, &e))?;
        files.retain(|f| is_model(f));
        files.sort();
        if files.is_empty() {
            return Err(SimError::Scenario(format!(
                "no models in {}: expected files NAME.toml",
                folder.display()
            )));
        }
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|e| failed(&file, &e))?;
            self.add(&file, text)?;
        }
        Ok(self)
    }

    /// The lab's workloads mean the models whose names begin with `lab`.
    #[must_use]
    pub fn of_lab(self, lab: &str) -> Self {
        let lab = lab.to_owned();
        Self { lab, ..self }
    }

    /// A model's name is its file's, so that nobody has to search for it.
    fn add(&mut self, file: &Path, text: String) -> Result<(), SimError> {
        let bad = |what: String| SimError::Model {
            name: file.display().to_string(),
            what,
        };
        let model: Model = toml::from_str(&text).map_err(|e| bad(e.to_string()))?;
        if file.file_stem().and_then(|s| s.to_str()) != Some(&model.name) {
            return Err(bad(format!(
                "name = {0:?}: expected the file to be called {0}.toml",
                model.name
            )));
        }
        self.all.insert(model.name.clone(), (Arc::new(model), text));
        Ok(())
    }

    /// Names of all models.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }

    /// The model called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Model>> {
        self.all.get(name).map(|(model, _)| model)
    }

    /// The text of the model called `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.all.get(name).map(|(_, text)| text.as_str())
    }

    /// What a case may ask for: models, and workloads of the lab that have one.
    pub fn workloads(&self) -> BTreeSet<&str> {
        let modelled = |w: &&LabWorkload| {
            let names = w.model_names(&self.lab, None);
            names.iter().any(|n| self.all.contains_key(n))
        };
        let lab = LAB.iter().filter(modelled).map(|w| w.name);
        self.names().chain(lab).collect()
    }

    /// The model of `work`. The lab's names mean the lab's programs: `lock` with
    /// `op = "pipe"` is the model `lab-lock-pipe`. Any other name is a model's.
    pub fn resolve(&self, work: &Workload) -> Result<Arc<Model>, WorkloadProblem> {
        if let Some(lab) = LabWorkload::find(&work.workload) {
            return self.resolve_lab(lab, work);
        }
        let Some(model) = self.get(&work.workload) else {
            let known = self.workloads();
            return Err(named(format!(
                "unknown workload `{}`: the simulator has {}{}",
                work.workload,
                known.iter().copied().collect::<Vec<_>>().join(", "),
                hint(&work.workload, known)
            )));
        };
        match work.params.keys().next() {
            None => Ok(Arc::clone(model)),
            Some(param) => Err(of_param(
                param,
                format!(
                    "the model `{}` has no parameters; a variant is a model of its own (`corun sim models`)",
                    work.workload
                ),
            )),
        }
    }

    fn resolve_lab(
        &self,
        lab: &LabWorkload,
        work: &Workload,
    ) -> Result<Arc<Model>, WorkloadProblem> {
        let mut variant = None;
        for (param, value) in &work.params {
            let value = as_text(value);
            if lab.variant.is_some_and(|(name, _)| name == param) {
                variant = Some(value);
                continue;
            }
            let amount = lab.amounts.iter().find(|(name, _)| name == param);
            match amount {
                Some((_, default)) if *default == value => {}
                Some((_, default)) => {
                    let what = format!(
                        "{value}: the simulator models `{}` with the default alone, {default}",
                        lab.name
                    );
                    return Err(of_param(param, what));
                }
                None => return Err(of_param(param, unknown_param(lab, param))),
            }
        }
        let names = lab.model_names(&self.lab, variant.as_deref());
        if let Some(model) = names.iter().find_map(|n| self.get(n)) {
            return Ok(Arc::clone(model));
        }
        let what = format!(
            "the simulator has no model of it: expected one called {}",
            names.join(" or ")
        );
        match (variant, lab.variant) {
            (Some(value), Some((param, _))) => Err(of_param(param, format!("{value}: {what}"))),
            _ => Err(named(format!("{}: {what}", lab.name))),
        }
    }
}

impl Abilities for Models {
    fn workload(&self, work: &Workload) -> Result<(), WorkloadProblem> {
        self.resolve(work).map(drop)
    }

    fn options(&self, options: &[String]) -> Result<(), String> {
        let parsed = CorunOptions::parse(options);
        parsed.map(drop).map_err(|e| e.to_string())
    }
}

fn is_model(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "toml")
}

fn as_text(value: &ParamValue) -> String {
    match value {
        ParamValue::Int(n) => n.to_string(),
        ParamValue::Text(text) => text.clone(),
    }
}

fn unknown_param(lab: &LabWorkload, param: &str) -> String {
    let variant = lab.variant.iter().map(|(name, _)| *name);
    let names: Vec<&str> = variant.chain(lab.amounts.iter().map(|(n, _)| *n)).collect();
    format!(
        "unknown parameter `{param}`: `{}` has {}{}",
        lab.name,
        names.join(", "),
        hint(param, names.iter().copied())
    )
}

fn named(message: String) -> WorkloadProblem {
    WorkloadProblem {
        param: None,
        message,
    }
}

fn of_param(param: &str, message: String) -> WorkloadProblem {
    WorkloadProblem {
        param: Some(param.to_owned()),
        message,
    }
}
