package schemas

import "regexp"

// Some programs have no null for a value that they do not know. Python's json and pandas write NaN, and
// PostgreSQL keeps NaN and infinity. MySQL keeps the date 0000-00-00, and PHP writes "" for a time. Odoo
// writes false, and no field is a boolean. None of them is a value of the field, and each has one meaning
// there. So in a field that may be null it is null, as long as its text cannot be the field's value. Anywhere
// else it breaks the contract.
var (
	// notANumber matches what is no number and no time, in a string or without quotes.
	notANumber = regexp.MustCompile(`(?i)^(?:false|nan|[+-]?inf(?:inity)?)$`)
	// notATime also matches what only a time is null by.
	notATime = regexp.MustCompile(`(?i)^(?:|false|nan|nat|[+-]?infinity|` +
		`0000-00-00(?:[ t]00:00:00(?:\.0+)?z?)?)$`)
	// notAText matches what is no string because it has no quotes. With quotes it is a text like any other.
	notAText = regexp.MustCompile(`^(?:false|NaN|-?Infinity)$`)

	// unquoted matches the same words in JSON that is well formed otherwise.
	unquoted = regexp.MustCompile(`-?\b(?:NaN|Infinity)\b`)
)
