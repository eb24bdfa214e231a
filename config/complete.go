package config

import (
	"time"

	"github.com/storestream/storestream/schemas"
)

// paces has the defaults of a resource for each source. A database finds changes by an index. The service
// shows whole days only.
var paces = map[string]map[string]string{
	Postgres: {"source": Postgres, "interval": "1s", "overlap": "2m"},
	REST:     {"source": REST, "interval": "30s", "overlap": "5m"},
}

// complete sets the source of resources to REST if there is no database, and gives each resource the interval
// and overlap of the source in use. Without a DSN, a value that equals PostgreSQL's default counts as not
// set: a copy of example.yaml has every default written out, and would read whole days over REST every
// second. To poll REST every second, set `source: rest`.
func complete(v *values) {
	for _, d := range schemas.Declared() {
		path, from := "resources."+d.Name+".", fromDefault
		source := v.of(path + "source").Text
		fallback := source == Postgres && d.Table != "" && v.of(keyDSN).Text == ""
		if fallback {
			source, from = REST, "because postgres.dsn is empty"
			v.lay(layer{path + "source": {source, from}})
		}
		for _, key := range []string{"interval", "overlap"} {
			given := v.of(path + key)
			unset := given.From == fromDefault || fallback && sameDuration(given.Text, paces[Postgres][key])
			if source == REST && unset {
				v.lay(layer{path + key: {paces[REST][key], from}})
			}
		}
	}
}

func sameDuration(a, b string) bool {
	x, err := time.ParseDuration(a)
	y, _ := time.ParseDuration(b)
	return err == nil && x == y
}
