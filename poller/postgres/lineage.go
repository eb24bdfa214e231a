package postgres

import (
	"errors"
	"time"
)

// lagPatience is how long a standby may lag. After that it belongs to another cluster.
const lagPatience = 10 * time.Minute

// errRewound: this is not the database that was read before. All horizons are worthless.
var errRewound = errors.New("the database's transaction ids went back: it was restored, or is another one; " +
	"reading again from the watermark")

var errLagging = errors.New("the server shows less than the one that answered before: " +
	"the pooler leads to servers that are not equally up to date")

// lineage makes sure that every chunk follows those before it in one history of the database.
type lineage struct {
	latest  *clock    // of the last chunk that was used; nil: of none yet
	lagging time.Time // since when servers have shown less than latest; zero: they do not
}

// follow takes c for the latest clock, or says why a chunk read under it may not be used: errLagging, or
// errRewound, after which the lineage begins anew.
func (l *lineage) follow(c *clock) error {
	if before := l.latest; before != nil && (c.rewound(before) || c.olderThan(before)) {
		if l.lagging.IsZero() {
			l.lagging = time.Now()
		}
		if !c.rewound(before) && time.Since(l.lagging) < lagPatience {
			return errLagging
		}
		*l = lineage{}
		return errRewound
	}
	*l = lineage{latest: c}
	return nil
}
