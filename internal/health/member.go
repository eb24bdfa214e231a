package health

// Member is an instance of the consumer group, as the group has it.
type Member struct {
	// Instance is the name of the instance.
	Instance string `json:"instance"`
	// Enabled and Owned are the resources that it may poll, and those that it polls. Both are sorted.
	Enabled []string `json:"enabled"`
	Owned   []string `json:"owned"`
}
