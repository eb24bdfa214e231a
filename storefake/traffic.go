package storefake

type traffic struct{}
type shop struct{}
