//! A row in a trigger's hands: reading its columns by name and making the row that is to be stored instead. This is where
//! PostgreSQL's raw tuples are touched; everything above it speaks Rust types.

use pgrx::prelude::*;
use pgrx::{AllocatedByPostgres, PgTupleDesc};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};

unsafe extern "C-unwind" {
    /// utils/datum.h; pgrx has no binding for it.
    fn datum_image_eq(
        value1: pg_sys::Datum,
        value2: pg_sys::Datum,
        by_value: bool,
        length: c_int,
    ) -> bool;
}

/// One version of a row.
#[derive(Clone, Copy)]
pub struct Row {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
}

thread_local! {
    /// Column numbers by name, for each row type and width met in this backend: an upgrade adds columns, so positions are not fixed.
    static COLUMNS: RefCell<HashMap<(pg_sys::Oid, c_int, &'static str), c_int>> = RefCell::new(HashMap::new());
}

impl Row {
    /// The row that the trigger may replace, and for an update the row before it.
    pub fn of_trigger(trigger: &PgTrigger) -> (Self, Option<Self>) {
        let data = trigger.trigger_data();
        // SAFETY: PostgreSQL fills these for every row trigger; the relation outlives the call.
        let descriptor = unsafe { (*data.tg_relation).rd_att };
        let row = |tuple| Self { tuple, descriptor };
        if data.tg_newtuple.is_null() {
            (row(data.tg_trigtuple), None)
        } else {
            (row(data.tg_newtuple), Some(row(data.tg_trigtuple)))
        }
    }

    fn number(&self, column: &'static str) -> c_int {
        // SAFETY: the descriptor is the relation's.
        let (row_type, width) = unsafe { ((*self.descriptor).tdtypeid, (*self.descriptor).natts) };
        COLUMNS.with_borrow_mut(|columns| {
            *columns.entry((row_type, width, column)).or_insert_with(|| {
                let name = CString::new(column).expect("column names are literals without NUL");
                // SAFETY: as above; SPI_fnumber only compares names.
                let number = unsafe { pg_sys::SPI_fnumber(self.descriptor, name.as_ptr()) };
                assert!(number > 0, "the table has no column {column}");
                number
            })
        })
    }

    fn type_of(&self, column: &'static str) -> pg_sys::Oid {
        // SAFETY: the number came from this descriptor.
        unsafe { pg_sys::SPI_gettypeid(self.descriptor, self.number(column)) }
    }

    fn datum(&self, column: &'static str) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: tuple and descriptor belong together; SPI_getbinval needs no SPI connection.
        let datum = unsafe {
            pg_sys::SPI_getbinval(
                self.tuple,
                self.descriptor,
                self.number(column),
                &mut is_null,
            )
        };
        (!is_null).then_some(datum)
    }

    /// A column's value, where `T` is what the column stores.
    pub fn get<T: FromDatum>(&self, column: &'static str) -> Option<T> {
        let datum = self.datum(column)?;
        // SAFETY: every caller names the column's own type; text-like types share one representation.
        unsafe { T::from_datum(datum, false) }
    }

    /// A column's value as its type prints it: how enums and arrays of them are read.
    pub fn printed(&self, column: &'static str) -> Option<String> {
        let datum = self.datum(column)?;
        // SAFETY: the output function is that of the column's own type, and returns a terminated string.
        unsafe {
            let mut function = pg_sys::InvalidOid;
            let mut is_varlena = false;
            pg_sys::getTypeOutputInfo(self.type_of(column), &mut function, &mut is_varlena);
            let text = pg_sys::OidOutputFunctionCall(function, datum);
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    /// Element `index` of a jsonb array column, as PostgreSQL prints it.
    pub fn json_element(&self, column: &'static str, index: i32) -> Option<String> {
        let array = self.datum(column)?;
        // SAFETY: callers name jsonb columns.
        unsafe { json_element(array, index) }
    }

    /// Whether the column has a value.
    pub fn has(&self, column: &'static str) -> bool {
        self.datum(column).is_some()
    }

    /// Whether both rows hold the same value.
    pub fn agrees(&self, other: &Self, column: &'static str) -> bool {
        match (self.datum(column), other.datum(column)) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                let (mut length, mut by_value) = (0, false);
                // SAFETY: both datums are of the column's type. datum_image_eq may raise an error while it looks through TOAST, so
                // it runs behind pgrx's barrier; nothing in the closure needs dropping.
                unsafe {
                    pg_sys::get_typlenbyval(self.type_of(column), &mut length, &mut by_value);
                    let length = c_int::from(length);
                    pg_sys::ffi::pg_guard_ffi_boundary(|| datum_image_eq(a, b, by_value, length))
                }
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

/// Element `index` of a jsonb array, as PostgreSQL prints it.
///
/// # Safety
/// `array` must be a jsonb datum.
pub unsafe fn json_element(array: pg_sys::Datum, index: i32) -> Option<String> {
    // SAFETY: both functions take what they are given here, and return jsonb and a terminated string.
    unsafe {
        let element = pgrx::direct_function_call_as_datum(
            pg_sys::jsonb_array_element,
            &[Some(array), Some(pg_sys::Datum::from(index))],
        )?;
        let text = pgrx::direct_function_call_as_datum(pg_sys::jsonb_out, &[Some(element)])?;
        Some(
            CStr::from_ptr(text.cast_mut_ptr())
                .to_string_lossy()
                .into_owned(),
        )
    }
}

/// A row to be stored instead of another.
pub struct Replacement {
    row: Row,
    numbers: Vec<c_int>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Replacement {
    /// Starts from a row.
    pub fn of(row: Row) -> Self {
        Self {
            row,
            numbers: vec![],
            values: vec![],
            nulls: vec![],
        }
    }

    fn push(&mut self, column: &'static str, datum: Option<pg_sys::Datum>) {
        self.numbers.push(self.row.number(column));
        self.values.push(datum.unwrap_or(pg_sys::Datum::from(0)));
        self.nulls.push(datum.is_none());
    }

    /// Stores a value, where `T` is what the column stores.
    pub fn set<T: IntoDatum>(&mut self, column: &'static str, value: T) {
        self.push(column, value.into_datum());
    }

    /// Stores NULL.
    pub fn clear(&mut self, column: &'static str) {
        self.push(column, None);
    }

    /// Stores what the column's type reads from this text.
    pub fn read(&mut self, column: &'static str, text: &str) {
        let text = CString::new(text).expect("texts made here have no NUL");
        // SAFETY: the input function is that of the column's own type.
        let datum = unsafe {
            let mut function = pg_sys::InvalidOid;
            let mut parameter = pg_sys::InvalidOid;
            pg_sys::getTypeInputInfo(self.row.type_of(column), &mut function, &mut parameter);
            pg_sys::OidInputFunctionCall(function, text.as_ptr().cast_mut(), parameter, -1)
        };
        self.push(column, Some(datum));
    }

    /// The row as far as it was replaced.
    pub fn row(&mut self) -> Row {
        let count = c_int::try_from(self.numbers.len()).expect("a table has few columns");
        // SAFETY: the three vectors have one element a column; the numbers came from this descriptor.
        let tuple = unsafe {
            pg_sys::heap_modify_tuple_by_cols(
                self.row.tuple,
                self.row.descriptor,
                count,
                self.numbers.as_mut_ptr(),
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr(),
            )
        };
        Row {
            tuple,
            descriptor: self.row.descriptor,
        }
    }
}

/// A row, as a trigger function returns it.
pub fn returned<'a>(row: Row) -> PgHeapTuple<'a, AllocatedByPostgres> {
    // SAFETY: the tuple lives in the caller's memory context or in the trigger's data, and the descriptor in the relation.
    unsafe {
        PgHeapTuple::from_heap_tuple(PgTupleDesc::from_pg_unchecked(row.descriptor), row.tuple)
    }
}
