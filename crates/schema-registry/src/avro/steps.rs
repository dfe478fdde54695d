//! What a reader does, step by step, with the bytes of a writer.

/// The number of a step.
pub type StepId = usize;

/// Compiled reading.
#[derive(Debug, Default)]
pub struct Steps {
    pub list: Vec<Step>,
    pub root: StepId,
    /// What the writer may write and the reader can't read.
    pub mismatches: Vec<String>,
}

/// The writer's or the reader's type of a number, by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    Int,
    Long,
    Float,
    Double,
}

/// One value.
#[derive(Debug)]
pub enum Step {
    Null,
    Boolean,
    Number {
        from: Number,
        to: Number,
    },
    /// A string or bytes, which the reader takes for text or not.
    Text {
        to_text: bool,
    },
    Fixed(usize),
    Enum(Vec<Symbol>),
    Array(StepId),
    Map(StepId),
    /// The writer's union: an index comes first.
    Union(Vec<StepId>),
    /// A branch of the reader's union, which has a name in JSON unless it is null.
    Branch(String, StepId),
    Record(RecordSteps),
    /// What the reader can't read.
    Mismatch(String),
}

/// The reader's symbol of a writer's symbol.
#[derive(Clone, Debug)]
pub struct Symbol {
    pub text: String,
    /// Whether the reader has it.
    pub is_known: bool,
}

#[derive(Debug, Default)]
pub struct RecordSteps {
    /// The writer's fields: those without a name are skipped.
    pub fields: Vec<(Option<String>, StepId)>,
    /// The fields that only the reader has, with the encoding of their default.
    pub defaults: Vec<(String, Vec<u8>, StepId)>,
}

impl Steps {
    pub fn mismatches(&self) -> Vec<String> {
        self.mismatches.clone()
    }
}
