package schemas

import "slices"

// Set is the resources in force, in the order in which they are declared.
type Set struct{ resources []*Resource }

// Get returns the resource of that name, nil if there is none.
func (s *Set) Get(name string) *Resource {
	for _, r := range s.resources {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// All returns every resource.
func (s *Set) All() []*Resource { return slices.Clone(s.resources) }
