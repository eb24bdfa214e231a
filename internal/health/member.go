package health

// Member is an instance of the consumer group, as the group has it.
type Member struct {
	// Instance is the name of the instance.
	Instance string `json:"instance"`
	// Enabled lists the resources that it may poll, sorted.
	Enabled []string `json:"enabled"`
	// Owned lists the resources that it polls.
	Owned []string `json:"owned"`
}
