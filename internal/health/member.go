package health

// Member is an instance of the consumer group, as the group has it.
type Member struct {
	Instance string   `json:"instance"`
	Enabled  []string `json:"enabled"` // resources, sorted
	Owned    []string `json:"owned"`   // of these, those that are its own
}
