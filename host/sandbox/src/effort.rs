//! How long a function takes to compile, estimated before it is compiled.
//!
//! A compiler is linear in the size of ordinary code only. A few kilobytes of nested loops, or of
//! jumps that all carry many variables, keep it busy for minutes and fill the memory, and nothing
//! can interrupt it. So admission adds up what is known to be expensive. The prices were measured
//! with functions made to be bad in one way each; for ordinary code the sum is a few times too
//! high, which the limits allow for.

use wasmparser::{BinaryReaderError, BlockType, FunctionBody, Operator};

/// Every byte.
const BYTE_NS: u64 = 2_000;
/// Every pair of blocks of one function.
const BLOCK_PAIR_NS: u64 = 30;
/// Every variable in every block.
const BLOCK_VARIABLE_NS: u64 = 25;
/// Every loop in every loop around it.
const LOOP_IN_LOOP_NS: u64 = 600;
/// Every variable that a jump brings to its target.
const CARRIED_NS: u64 = 5_000;

/// Most parameters of a function type.
pub(crate) const PARAMETERS_MAX: usize = 256;
/// Most results of a function type. A call of two bytes may produce so many values; compilers
/// give one, or two with the multi-value proposal.
pub(crate) const RESULTS_MAX: usize = 16;

/// Estimates one function of a module whose function types are within the two limits above.
///
/// # Errors
/// The parser's, when the body is malformed.
pub(crate) fn nanoseconds(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    let range = body.range();
    let mut variables = 0_u64;
    for local in body.get_locals_reader()? {
        variables = variables.saturating_add(u64::from(local?.0));
    }
    let mut flow = Flow {
        variables,
        ..Flow::default()
    };
    for operator in body.get_operators_reader()? {
        flow.operator(&operator?)?;
    }
    let bytes = range.end.saturating_sub(range.start);
    let blocks = flow.blocks;
    Ok([
        BYTE_NS.saturating_mul(bytes),
        BLOCK_PAIR_NS.saturating_mul(blocks).saturating_mul(blocks),
        BLOCK_VARIABLE_NS
            .saturating_mul(blocks)
            .saturating_mul(variables),
        LOOP_IN_LOOP_NS.saturating_mul(flow.loops_in_loops),
        CARRIED_NS.saturating_mul(flow.carried),
    ]
    .into_iter()
    .fold(0, u64::saturating_add))
}

/// What was seen of a function's control flow.
#[derive(Default)]
struct Flow {
    variables: u64,
    /// Assignments so far.
    assigned: u64,
    blocks: u64,
    loops_in_loops: u64,
    carried: u64,
    /// Loops around the current place.
    loops: u64,
    /// The blocks around the current place, innermost last.
    labels: Vec<Label>,
}

/// A block that can be jumped to.
struct Label {
    is_loop: bool,
    /// Some jump leads here, besides falling through.
    is_target: bool,
    /// Assignments before the block.
    assigned_before: u64,
    /// Values that a jump takes along from the operand stack; the most possible.
    operands: u64,
}

/// Values that a jump to a block of this type takes along; the most possible.
fn operands(ty: BlockType, is_loop: bool) -> u64 {
    match (ty, is_loop) {
        (BlockType::Empty, _) | (BlockType::Type(_), true) => 0,
        (BlockType::Type(_), false) => 1,
        (BlockType::FuncType(_), false) => u64::try_from(RESULTS_MAX).unwrap_or(u64::MAX),
        (BlockType::FuncType(_), true) => u64::try_from(PARAMETERS_MAX).unwrap_or(u64::MAX),
    }
}

impl Flow {
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "the other operators neither branch nor assign"
    )]
    fn operator(&mut self, operator: &Operator<'_>) -> Result<(), BinaryReaderError> {
        match operator {
            Operator::Block { blockty } => self.open(*blockty, false, false),
            // The two ways through an `if` meet at its end.
            Operator::If { blockty } => self.open(*blockty, false, true),
            Operator::Loop { blockty } => self.open(*blockty, true, false),
            Operator::Else => self.blocks = self.blocks.saturating_add(1),
            Operator::End => self.close(),
            Operator::LocalSet { .. } | Operator::LocalTee { .. } => {
                self.assigned = self.assigned.saturating_add(1);
            }
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                self.jump(*relative_depth);
            }
            Operator::BrTable { targets } => {
                for depth in targets.targets() {
                    self.jump(depth?);
                }
                self.jump(targets.default());
            }
            _ => {}
        }
        Ok(())
    }

    #[allow(
        clippy::fn_params_excessive_bools,
        reason = "two facts about a block that do not depend on each other"
    )]
    fn open(&mut self, ty: BlockType, is_loop: bool, is_target: bool) {
        self.blocks = self.blocks.saturating_add(1);
        if is_loop {
            self.loops += 1;
            self.loops_in_loops = self.loops_in_loops.saturating_add(self.loops);
        }
        let operands = operands(ty, is_loop);
        let assigned_before = self.assigned;
        self.labels.push(Label {
            is_loop,
            is_target,
            assigned_before,
            operands,
        });
    }

    fn close(&mut self) {
        let Some(label) = self.labels.pop() else {
            return;
        };
        if label.is_loop {
            self.loops = self.loops.saturating_sub(1);
        } else if label.is_target {
            self.carry(label.assigned_before, label.operands);
        }
    }

    fn jump(&mut self, depth: u32) {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        let index = self
            .labels
            .len()
            .checked_sub(1)
            .and_then(|last| last.checked_sub(depth));
        // A jump to the function itself returns, and carries no variable.
        let Some(label) = index.and_then(|index| self.labels.get_mut(index)) else {
            return;
        };
        label.is_target = true;
        let (assigned_before, operands) = (label.assigned_before, label.operands);
        self.carry(assigned_before, operands);
    }

    /// A jump brings its operands to the target, and those variables that were assigned since the
    /// target's block began; at most all of them.
    fn carry(&mut self, assigned_before: u64, operands: u64) {
        let variables = self
            .assigned
            .saturating_sub(assigned_before)
            .min(self.variables);
        self.carried = self
            .carried
            .saturating_add(variables)
            .saturating_add(operands);
    }
}
