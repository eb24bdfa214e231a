package config

// Input has the origins of a configuration.
type Input struct {
	File    string   // path of a YAML file; may be empty
	Environ []string // NAME=value, as os.Environ gives it
	Set     []string // key=value, from flags; it wins over the others
}

// Load reads all layers and checks them. Every error is an *InvalidError.
func Load(in Input) (*Config, error) {
	v := newValues()
	m := &mistakes{values: v, broken: map[string]bool{}}
	loadFile(in.File, v, m)
	loadEnvironment(in.Environ, v, m)
	loadFlags(in.Set, v, m)
	complete(v)
	c := decode(v, m)
	c.proxies = proxiesOf(in.Environ)
	checkRules(c, m)
	if len(m.found) == 0 {
		c.follow(m)
	}
	if len(m.found) > 0 {
		return nil, &InvalidError{Mistakes: m.inOrder()}
	}
	c.entries = v.entries()
	return c, nil
}
