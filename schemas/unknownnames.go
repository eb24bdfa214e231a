package schemas

import "bytes"

const (
	maxUnknown     = 256 // names remembered; a service that invents a name for each row must not fill the memory
	maxUnknownName = 100 // bytes of a name
)

// unknownNames remembers the names of fields that the schema does not know.
type unknownNames struct {
	met   map[string]bool
	fresh []string // met since the last drain
}

// add remembers a name, in valid UTF-8 whatever came: it becomes a metric's label.
func (u *unknownNames) add(name []byte) {
	name = name[:min(len(name), maxUnknownName)]
	if u.met[string(name)] || len(u.met) >= maxUnknown {
		return
	}
	if u.met == nil {
		u.met = map[string]bool{}
	}
	u.met[string(name)] = true
	u.fresh = append(u.fresh, string(bytes.ToValidUTF8(name, []byte("\uFFFD"))))
}

func (u *unknownNames) drain() []string {
	fresh := u.fresh
	u.fresh = nil
	return fresh
}
