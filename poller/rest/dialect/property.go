package dialect

// Property is a question that the service's document leaves open.
type Property struct {
	// Name is its key in the configuration (store.dialect.<name>) and in a watermark.
	Name string
	// Question is the question for people.
	Question string
	// OnlySet is set if no answer can prove a value: only the configuration says it.
	OnlySet bool
	// Plain is the value that the document suggests. An answer that shows another one is worth a warning.
	Plain string
	// Means has the meaning of each value and its consequence, for people.
	Means map[string]string
}

// Properties returns all properties, in the order in which they are shown.
func Properties() []*Property { return []*Property{Days, UpdatedTo, CreatedTo, Count} }
