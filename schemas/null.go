package schemas

import "regexp"

// Some programs have no null for a value that they do not know. Python's json and pandas write NaN, and
// PostgreSQL keeps NaN and infinity. MySQL keeps the date 0000-00-00, and PHP writes "" for a time. Odoo
// writes false, and no field is a boolean. None of them is a value of the field, and each has one meaning
// there. So in a field that may be null it is null, as long as its text cannot be the field's value. Anywhere
// else it breaks the contract.
var (
	// notANumber matches the texts that are null for a number, in a string or without quotes.
	notANumber = regexp.MustCompile(`(?i)^(?:false|nan|[+-]?inf(?:inity)?)$`)
	// notATime matches those that are null for a time.
	notATime = regexp.MustCompile(`(?i)^(?:|false|nan|nat|[+-]?infinity|` +
		`0000-00-00(?:[ t]00:00:00(?:\.0+)?z?)?)$`)
	// notAText matches the words without quotes that are null for a text. With quotes they are texts like any
	// other.
	notAText = regexp.MustCompile(`^(?:false|NaN|-?Infinity)$`)

	// unquoted matches the same words in JSON that is well formed otherwise.
	unquoted = regexp.MustCompile(`-?\b(?:NaN|Infinity)\b`)
)
