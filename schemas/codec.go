package schemas

// codec is everything that storestream does with the values of one kind of field. The kinds are in long.go,
// instant.go, decimal.go, double.go and text.go. The rest of the package is loops over codecs.
//
// A function that encodes appends the Avro value, without the branch of a union. It returns false if the
// field cannot hold the value exactly. The bytes that it has appended then mean nothing.
type codec struct {
	kind     string // the kind's name with its article, for people
	avroType string // the Avro type, in the form in which it is registered
	expected string // the values that a field can hold, for people
	halfEven bool   // a decimal with more digits than fit is rounded half to even

	// fromText encodes the text of a JSON number, a JSON string or a text column. It fails on nil.
	fromText func(b, text []byte) ([]byte, bool)
	// numbers is set if a JSON number can be a value. Otherwise values are JSON strings.
	numbers bool

	// fromColumn encodes a value of a PostgreSQL column, whose type is one of columns.
	fromColumn func(b []byte, v columnValue) ([]byte, bool)
	columns    []uint32

	// fromAvro encodes the value that c reads next. It was written under the type t, for which converts is true.
	fromAvro func(b []byte, t *avroType, c *cursor) ([]byte, bool)
	// converts returns whether values of t, which is no union, can be values of the field. Some may not fit.
	converts func(t *avroType) bool

	// toJSON appends the value that c reads next as JSON.
	toJSON func(dst []byte, c *cursor) []byte
	// skip moves c behind the value that it reads next.
	skip func(c *cursor)
}
