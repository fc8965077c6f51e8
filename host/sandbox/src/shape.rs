//! The cheap look at a component, before anything is compiled: is it one, is it bounded, what does
//! it import and export.
//!
//! The bounds keep hostile bytes from costing more than their size: compilers and linkers are not
//! linear in everything. They are far above what real components need (the largest known, a Python
//! interpreter, has about 20,000 functions in four modules).

use steadfast_model::limits::COMPONENT_BYTES_MAX;
use steadfast_ports::guest::Refusal;
use wasmparser::{
    ComponentExternalKind, ComponentInstance, ComponentTypeRef, CompositeInnerType, Encoding,
    FunctionBody, MemoryType, Parser, Payload, TableType, TypeBounds, Validator,
};

use crate::effort::{PARAMETERS_MAX, RESULTS_MAX};
use crate::limit::PARTS_MAX;
use crate::options::Options;
use crate::{config, effort};

/// Components inside components inside components.
const DEPTH_MAX: usize = 8;
/// Core modules in all.
const MODULES_MAX: u64 = 64;
/// Instantiations of nested components in all. Each level may multiply those below it, so this
/// bounds an exponential.
const COMPONENT_INSTANCES_MAX: u64 = 16;
/// Functions in all.
const FUNCTIONS_MAX: u64 = 200_000;
/// Types in all.
const TYPES_MAX: u64 = 100_000;
/// Imports, exports, globals, aliases, segments, canonical functions and custom sections, each.
const ITEMS_MAX: u64 = 200_000;
/// The largest function body in bytes.
const FUNCTION_BYTES_MAX: u64 = 1024 * 1024;
/// The longest estimated compilation of one function, which no other core can help with. The
/// compiler's memory grows with it: about 350 MB at the limit.
const FUNCTION_NS_MAX: u64 = 10_000_000_000;
/// The longest estimated compilation of all functions on one core.
const COMPONENT_NS_MAX: u64 = 240_000_000_000;

/// The outside of a component.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Names of what it imports, in order.
    pub(crate) imports: Vec<String>,
    /// Names of what it exports, in order, with whether it is a function.
    pub(crate) exports: Vec<(String, bool)>,
}

impl Shape {
    /// True when there is an exported function of that name.
    pub(crate) fn exports_function(&self, name: &str) -> bool {
        self.exports
            .iter()
            .any(|(export, is_function)| export == name && *is_function)
    }
}

/// Looks at a component.
///
/// # Errors
/// [`Refusal::NotAComponent`] when the bytes are something else or invalid, [`Refusal::TooLarge`]
/// when they exceed a bound.
pub(crate) fn look(bytes: &[u8], options: &Options) -> Result<Shape, Refusal> {
    if bytes.len() > COMPONENT_BYTES_MAX {
        let size = bytes.len();
        let text = format!("it is {size} bytes long; the limit is {COMPONENT_BYTES_MAX}");
        return Err(Refusal::TooLarge(text));
    }
    check_header(bytes)?;
    let shape = count(bytes, options)?;
    Validator::new_with_features(config::allowed_features())
        .validate_all(bytes)
        .map_err(|e| Refusal::NotAComponent(format!("it does not validate: {e}")))?;
    Ok(shape)
}

fn check_header(bytes: &[u8]) -> Result<(), Refusal> {
    let refuse = |text: &str| Err(Refusal::NotAComponent(text.to_owned()));
    if bytes.is_empty() {
        return refuse("the file is empty");
    }
    if Parser::is_component(bytes) {
        return Ok(());
    }
    if Parser::is_core_wasm(bytes) {
        return refuse("this is a core module; use `steadfast component build`");
    }
    if bytes.starts_with(b"\0asm") {
        return refuse("this is WebAssembly of an unknown version");
    }
    if std::str::from_utf8(bytes).is_ok() {
        return refuse("this is text, not WebAssembly");
    }
    refuse("the bytes do not begin like WebAssembly")
}

/// One pass over the sections, nested ones included, that counts and collects.
fn count(bytes: &[u8], options: &Options) -> Result<Shape, Refusal> {
    let mut counter = Counter::new(options);
    for payload in Parser::new(0).parse_all(bytes) {
        counter.payload(payload.map_err(malformed)?)?;
    }
    Ok(counter.shape)
}

#[allow(clippy::needless_pass_by_value, reason = "the form that map_err wants")]
fn malformed(error: wasmparser::BinaryReaderError) -> Refusal {
    Refusal::NotAComponent(format!("it is malformed: {error}"))
}

/// What was counted so far.
struct Counter<'a> {
    options: &'a Options,
    shape: Shape,
    depth: usize,
    modules: u64,
    component_instances: u64,
    core_instances: u64,
    functions: u64,
    types: u64,
    items: u64,
    memory_pages: u64,
    table_elements: u64,
    compile_ns: u64,
}

impl<'a> Counter<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            shape: Shape::default(),
            depth: 0,
            modules: 0,
            component_instances: 0,
            core_instances: 0,
            functions: 0,
            types: 0,
            items: 0,
            memory_pages: 0,
            table_elements: 0,
            compile_ns: 0,
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the enum grows with every proposal, and the validator refuses those not allowed"
    )]
    fn payload(&mut self, payload: Payload<'_>) -> Result<(), Refusal> {
        match payload {
            Payload::Version { encoding, .. } => self.enter(encoding),
            Payload::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(())
            }
            Payload::TypeSection(s) => self.types(s),
            Payload::CoreTypeSection(s) => add(&mut self.types, s.count(), TYPES_MAX, "types"),
            Payload::ComponentTypeSection(s) => add(&mut self.types, s.count(), TYPES_MAX, "types"),
            Payload::FunctionSection(s) => {
                add(&mut self.functions, s.count(), FUNCTIONS_MAX, "functions")
            }
            Payload::ComponentCanonicalSection(s) => {
                add(&mut self.functions, s.count(), FUNCTIONS_MAX, "functions")
            }
            Payload::ImportSection(s) => self.items(s.count()),
            Payload::ExportSection(s) => self.items(s.count()),
            Payload::GlobalSection(s) => self.items(s.count()),
            Payload::ElementSection(s) => self.items(s.count()),
            Payload::DataSection(s) => self.items(s.count()),
            Payload::ComponentAliasSection(s) => self.items(s.count()),
            Payload::CustomSection(_) => self.items(1),
            Payload::MemorySection(s) => s
                .into_iter()
                .try_for_each(|memory| self.memory(memory.map_err(malformed)?)),
            Payload::TableSection(s) => s
                .into_iter()
                .try_for_each(|table| self.table(table.map_err(malformed)?.ty)),
            Payload::CodeSectionEntry(body) => self.body(&body),
            Payload::InstanceSection(s) => {
                let max = u64::try_from(PARTS_MAX).unwrap_or(u64::MAX);
                add(&mut self.core_instances, s.count(), max, "core instances")
            }
            Payload::ComponentInstanceSection(s) => {
                for instance in s {
                    self.component_instance(&instance.map_err(malformed)?)?;
                }
                Ok(())
            }
            Payload::ComponentImportSection(s) => self.imports(s),
            Payload::ComponentExportSection(s) => self.exports(s),
            // Everything else is bounded by what is counted above or by the parser itself.
            _ => Ok(()),
        }
    }

    /// A module or component begins.
    fn enter(&mut self, encoding: Encoding) -> Result<(), Refusal> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_many("nested components", DEPTH_MAX));
        }
        match encoding {
            Encoding::Module => add(&mut self.modules, 1, MODULES_MAX, "core modules"),
            Encoding::Component => Ok(()),
        }
    }

    fn items(&mut self, count: u32) -> Result<(), Refusal> {
        add(
            &mut self.items,
            count,
            ITEMS_MAX,
            "imports, exports, globals and segments",
        )
    }

    fn types(&mut self, section: wasmparser::TypeSectionReader<'_>) -> Result<(), Refusal> {
        add(&mut self.types, section.count(), TYPES_MAX, "types")?;
        for group in section {
            for ty in group.map_err(malformed)?.into_types() {
                let CompositeInnerType::Func(ty) = &ty.composite_type.inner else {
                    continue;
                };
                if ty.params().len() > PARAMETERS_MAX {
                    return Err(too_many("parameters of one function", PARAMETERS_MAX));
                }
                if ty.results().len() > RESULTS_MAX {
                    return Err(too_many("results of one function", RESULTS_MAX));
                }
            }
        }
        Ok(())
    }

    fn body(&mut self, body: &FunctionBody<'_>) -> Result<(), Refusal> {
        let range = body.range();
        let bytes = range.end.saturating_sub(range.start);
        if bytes > FUNCTION_BYTES_MAX {
            let text = format!(
                "one of its functions is {bytes} bytes long; the limit is {FUNCTION_BYTES_MAX}"
            );
            return Err(Refusal::TooLarge(text));
        }
        let ns = effort::nanoseconds(body).map_err(malformed)?;
        self.compile_ns = self.compile_ns.saturating_add(ns);
        if ns > FUNCTION_NS_MAX {
            return Err(too_slow("one of its functions", ns, FUNCTION_NS_MAX));
        }
        if self.compile_ns > COMPONENT_NS_MAX {
            return Err(too_slow("it", self.compile_ns, COMPONENT_NS_MAX));
        }
        Ok(())
    }

    fn memory(&mut self, memory: MemoryType) -> Result<(), Refusal> {
        self.memory_pages = self.memory_pages.saturating_add(memory.initial);
        let bytes = self.memory_pages.saturating_mul(64 * 1024);
        let limit = self.options.memory_bytes_max;
        if usize::try_from(bytes).is_ok_and(|bytes| bytes <= limit) {
            return Ok(());
        }
        let text = format!("its memory begins with {bytes} bytes; the limit is {limit}");
        Err(Refusal::TooLarge(text))
    }

    fn table(&mut self, table: TableType) -> Result<(), Refusal> {
        self.table_elements = self.table_elements.saturating_add(table.initial);
        let (elements, limit) = (self.table_elements, self.options.table_elements_max);
        if usize::try_from(elements).is_ok_and(|elements| elements <= limit) {
            return Ok(());
        }
        let text = format!("its tables begin with {elements} elements; the limit is {limit}");
        Err(Refusal::TooLarge(text))
    }

    fn component_instance(&mut self, instance: &ComponentInstance<'_>) -> Result<(), Refusal> {
        match instance {
            ComponentInstance::Instantiate { .. } => add(
                &mut self.component_instances,
                1,
                COMPONENT_INSTANCES_MAX,
                "instances of nested components",
            ),
            ComponentInstance::FromExports(_) => self.items(1),
        }
    }

    fn imports(
        &mut self,
        section: wasmparser::ComponentImportSectionReader<'_>,
    ) -> Result<(), Refusal> {
        self.items(section.count())?;
        if self.depth == 1 {
            for import in section {
                let import = import.map_err(malformed)?;
                // A type that equals one of an imported interface is no capability.
                if !matches!(import.ty, ComponentTypeRef::Type(TypeBounds::Eq(_))) {
                    self.shape.imports.push(import.name.name.to_owned());
                }
            }
        }
        Ok(())
    }

    fn exports(
        &mut self,
        section: wasmparser::ComponentExportSectionReader<'_>,
    ) -> Result<(), Refusal> {
        self.items(section.count())?;
        if self.depth == 1 {
            for export in section {
                let export = export.map_err(malformed)?;
                let is_function = export.kind == ComponentExternalKind::Func;
                self.shape
                    .exports
                    .push((export.name.name.to_owned(), is_function));
            }
        }
        Ok(())
    }
}

fn too_slow(what: &str, ns: u64, ns_max: u64) -> Refusal {
    let (seconds, limit) = (ns / 1_000_000_000, ns_max / 1_000_000_000);
    Refusal::TooLarge(format!(
        "{what} would take about {seconds} s to compile; the limit is {limit} s"
    ))
}

fn add(sum: &mut u64, count: u32, max: u64, what: &str) -> Result<(), Refusal> {
    *sum = sum.saturating_add(u64::from(count));
    if *sum > max {
        Err(too_many(what, max))
    } else {
        Ok(())
    }
}

fn too_many(what: &str, max: impl std::fmt::Display) -> Refusal {
    Refusal::TooLarge(format!("it has too many {what}; the limit is {max}"))
}
