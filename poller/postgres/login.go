package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// errElsewhere refuses a DSN that leads elsewhere: rows of two databases would be mixed, and the password
// would go to a place that the operator has not confirmed.
var errElsewhere = errors.New("it differs from the DSN in use in more than user and password: that takes a " +
	"restart")

// logins returns the user, password and certificates for new connections: those parts of a DSN that may
// change while the process runs. The DSN, and the files that it names, are read again for each connection.
// first is the DSN at the start.
func logins(
	text rotation.Secret, set *rotation.Set, first dsn.DSN,
) (*rotation.Value[*pgx.ConnConfig], error) {
	inputs := []rotation.Input{text.Current}
	for _, path := range first.Files() {
		inputs = append(inputs, rotation.File(path))
	}
	return rotation.New(set, "postgres.dsn", func(texts []string) (*pgx.ConnConfig, error) {
		parsed, err := dsn.Parse(texts[0])
		if err != nil {
			return nil, err
		}
		if !first.SamePlace(parsed) {
			return nil, errElsewhere
		}
		pool, err := parsed.Config() // which reads the certificates once more
		if err != nil {
			return nil, err
		}
		return pool.ConnConfig, nil
	}, inputs...)
}
