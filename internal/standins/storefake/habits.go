package storefake

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Habits is how the framework behind a service writes its answers. Each is another form of the same content,
// and the zero value has the document's forms. A Stack sets those of a framework.
type Habits struct {
	Integers Integers
	Times    Times
	// Fractions shows the microseconds of an instant over REST, as far as Times has digits for them. Otherwise
	// REST shows the second that it lies in.
	Fractions bool
	Nulls     NullForm
	Meta      MetaForm // the numbers of meta
	More      MoreForm // the form of meta.has_more
	Empty     EmptyForm
	Case      Case
	// Surplus puts meta before data, and between them keys that the document does not have.
	Surplus bool
	Mark    bool // a byte order mark before each JSON body
	Errors  ErrorForm
	// KeyStatus is the status for a key that is missing, or is good no longer. Zero means 401.
	KeyStatus int
	// Slash answers a path without a slash at its end with a redirect to the same path with one.
	Slash bool
	// RateHeaders tells the rate limit in X-RateLimit-* headers of every answer, if there is a limit.
	RateHeaders bool
}

// Integers is the form of integers in rows, ids among them.
type Integers string

// Forms of integers.
const (
	IntegerAsIs   Integers = ""        // 12
	IntegerString Integers = "strings" // "12"
	IntegerFloat  Integers = "floats"  // 12.0, of fields that are not ids
)

// Times is the form of instants in rows.
type Times string

// Forms of instants.
const (
	TimesAsIs     Times = ""         // 2026-11-25T10:15:00Z, and .123456 before the Z
	TimesPython   Times = "python"   // 2026-11-25T10:15:00+00:00, and six digits unless all are 0
	TimesJS       Times = "js"       // 2026-11-25T10:15:00.000Z
	TimesJava     Times = "java"     // 2026-11-25T10:15Z, seconds and groups of three digits unless they are 0
	TimesDotnet   Times = "dotnet"   // 2026-11-25T10:15:00.0000000Z
	TimesLaravel  Times = "laravel"  // 2026-11-25T10:15:00.000000Z
	TimesPostgres Times = "postgres" // 2026-11-25 10:15:00+00
	TimesBigQuery Times = "bigquery" // 2026-11-25 10:15:00 UTC
)

// NullForm is the form of null in rows.
type NullForm string

// Forms of null.
const (
	NullAsIs   NullForm = ""          // null
	NullNaN    NullForm = "nan"       // the word NaN, of all fields but instants
	NullAbsent NullForm = "absent"    // the row has no such field
	NullEmpty  NullForm = "empty"     // "", of instants
	NullZero   NullForm = "zero-date" // "0000-00-00 00:00:00", of instants
)

// MetaForm is the form of the numbers of meta.
type MetaForm string

// Forms of the numbers of meta.
const (
	MetaAsIs     MetaForm = ""         // 1000
	MetaString   MetaForm = "strings"  // "1000"
	MetaFloat    MetaForm = "floats"   // 1000.0
	MetaExponent MetaForm = "exponent" // 1000e0
)

// MoreForm is the form of meta.has_more.
type MoreForm string

// Forms of meta.has_more.
const (
	MoreAsIs   MoreForm = ""       // true
	MoreString MoreForm = "string" // "true"
	MoreNumber MoreForm = "number" // 1
	MoreAbsent MoreForm = "absent" // nothing instead of false
	MoreNoMeta MoreForm = "null"   // meta is null instead
)

// EmptyForm is the form of data on a page without rows.
type EmptyForm string

// Forms of data on a page without rows.
const (
	EmptyAsIs   EmptyForm = ""       // []
	EmptyNull   EmptyForm = "null"   // null
	EmptyAbsent EmptyForm = "absent" // the answer has no data
)

// Case is the letter case of the keys around the rows. The keys of rows stay the document's.
type Case string

// Letter cases.
const (
	CaseAsIs   Case = ""       // has_more
	CaseCamel  Case = "camel"  // hasMore
	CasePascal Case = "pascal" // HasMore
)

// check reports every impossible setting of h.
func (h *Habits) check() error {
	errs := []error{
		known("integers", h.Integers, "as-is", IntegerString, IntegerFloat),
		known("times", h.Times, "as-is", TimesPython, TimesJS, TimesJava, TimesDotnet, TimesLaravel,
			TimesPostgres, TimesBigQuery),
		known("null-form", h.Nulls, "as-is", NullNaN, NullAbsent, NullEmpty, NullZero),
		known("meta-form", h.Meta, "as-is", MetaString, MetaFloat, MetaExponent),
		known("has-more-form", h.More, "as-is", MoreString, MoreNumber, MoreAbsent, MoreNoMeta),
		known("empty-form", h.Empty, "as-is", EmptyNull, EmptyAbsent),
		known("case", h.Case, "as-is", CaseCamel, CasePascal),
		known("errors", h.Errors, "as-is", errorForms...),
	}
	if !slices.Contains([]int{0, 401, 403}, h.KeyStatus) {
		errs = append(errs, fmt.Errorf("key-status %d: expected 401 or 403", h.KeyStatus))
	}
	return errors.Join(errs...)
}

// appendInstant writes an instant in the habit's form.
func (h *Habits) appendInstant(dst []byte, at time.Time) []byte {
	if !h.Fractions {
		at = at.Truncate(time.Second)
	}
	layout := "2006-01-02T15:04:05Z07:00"
	switch h.Times {
	case TimesAsIs:
		layout = "2006-01-02T15:04:05.999999Z"
	case TimesPython:
		layout = "2006-01-02T15:04:05-07:00"
		if at.Nanosecond() > 0 {
			layout = "2006-01-02T15:04:05.000000-07:00"
		}
	case TimesJS:
		layout = "2006-01-02T15:04:05.000Z"
	case TimesJava:
		layout = javaLayout(at)
	case TimesDotnet:
		layout = "2006-01-02T15:04:05.0000000Z"
	case TimesLaravel:
		layout = "2006-01-02T15:04:05.000000Z"
	case TimesPostgres:
		layout = "2006-01-02 15:04:05.999999-07"
	case TimesBigQuery:
		layout = "2006-01-02 15:04:05.999999 UTC"
	}
	return at.AppendFormat(dst, layout)
}

// javaLayout is the layout of OffsetDateTime.toString. It leaves out zeros at the end.
func javaLayout(at time.Time) string {
	switch nanos := at.Nanosecond(); {
	case nanos == 0 && at.Second() == 0:
		return "2006-01-02T15:04Z"
	case nanos == 0:
		return "2006-01-02T15:04:05Z"
	case nanos%1e6 == 0:
		return "2006-01-02T15:04:05.000Z"
	default:
		return "2006-01-02T15:04:05.000000Z"
	}
}

// begin writes the bytes before a JSON body.
func (h *Habits) begin(dst []byte) []byte {
	if h.Mark {
		return append(dst, "\ufeff"...)
	}
	return dst
}

// appendKey writes a key around the rows, with its colon.
func (h *Habits) appendKey(dst []byte, name string) []byte {
	if h.Case != CaseAsIs {
		words := strings.Split(name, "_")
		for i, word := range words {
			if i > 0 || h.Case == CasePascal {
				words[i] = strings.ToUpper(word[:1]) + word[1:]
			}
		}
		name = strings.Join(words, "")
	}
	return append(append(append(dst, '"'), name...), `":`...)
}

// appendNumber writes a number of meta.
func (h *Habits) appendNumber(dst []byte, n int) []byte {
	switch h.Meta {
	case MetaString:
		return strconv.AppendQuote(dst, strconv.Itoa(n))
	case MetaFloat:
		return append(strconv.AppendInt(dst, int64(n), 10), ".0"...)
	case MetaExponent:
		return append(strconv.AppendInt(dst, int64(n), 10), "e0"...)
	default:
		return strconv.AppendInt(dst, int64(n), 10)
	}
}

// appendMore writes meta.has_more, behind a comma.
func (h *Habits) appendMore(dst []byte, more bool) []byte {
	if h.More == MoreAbsent && !more {
		return dst
	}
	dst = h.appendKey(append(dst, ','), "has_more")
	switch {
	case h.More == MoreString:
		return strconv.AppendQuote(dst, strconv.FormatBool(more))
	case h.More == MoreNumber && more:
		return append(dst, '1')
	case h.More == MoreNumber:
		return append(dst, '0')
	default:
		return strconv.AppendBool(dst, more)
	}
}

// appendInteger writes an integer of a row.
func (h *Habits) appendInteger(dst []byte, field string, n int64) []byte {
	switch {
	case h.Integers == IntegerString:
		return strconv.AppendQuote(dst, strconv.FormatInt(n, 10))
	case h.Integers == IntegerFloat && field != "id" && !strings.HasSuffix(field, "_id"):
		return append(strconv.AppendInt(dst, n, 10), ".0"...)
	default:
		return strconv.AppendInt(dst, n, 10)
	}
}

// null is the text of a null of kind k.
func (h *Habits) null(k kind) string {
	switch {
	case h.Nulls == NullNaN && k != instant:
		return "NaN"
	case h.Nulls == NullEmpty && k == instant:
		return `""`
	case h.Nulls == NullZero && k == instant:
		return `"0000-00-00 00:00:00"`
	default:
		return "null"
	}
}
