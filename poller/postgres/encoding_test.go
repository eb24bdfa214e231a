package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storestream/storestream/poller/postgres"
	"github.com/storestream/storestream/schemas"
)

// openShopEncoded is a shop in a database of another encoding than UTF8.
func openShopEncoded(t *testing.T, encoding string) *shop {
	t.Helper()
	s := &shop{t: t, server: server, name: fmt.Sprintf("shop_%d", shops.Add(1))}
	root := dialDSN(t, server.AdminDSN("postgres"))
	run(t, root, fmt.Sprintf("CREATE DATABASE %s TEMPLATE template0 ENCODING '%s'", s.name, encoding))
	s.admin = s.writer()
	s.exec(ordersTable)
	s.exec("GRANT SELECT ON orders TO " + role)
	return s
}

// status is an expression for a text of these bytes, in the database's encoding.
func status(bytes string) string {
	return fmt.Sprintf("convert_from('\\x%x'::bytea, current_setting('server_encoding'))", bytes)
}

func (s *shop) putStatus(id int, status string) {
	s.t.Helper()
	s.exec(fmt.Sprintf("INSERT INTO orders VALUES (%d, 1, %s, 1, now(), now())", id, status))
}

// says checks the status of an order, as the topic would have it.
func (r *reader) says(id int64, want string) {
	r.t.Helper()
	row, ok := r.rows[id]
	if !ok {
		r.t.Errorf("order %d was not read: %q", id, r.rejects[id].Err)
		return
	}
	values, err := schemas.NewValueReader(orders, "")
	if err != nil {
		r.t.Fatal(err)
	}
	v, err := values.Read(row.Value)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := string(v.AppendJSON(nil, false)); !strings.Contains(got, fmt.Sprintf("%q", want)) {
		r.t.Errorf("order %d is %s, expected status %q", id, got, want)
	}
}

// Bytes of another encoding may happen to be UTF-8, of another text: nothing downstream would notice.
func TestTextIsTheSameWhateverTheDatabasesEncodingAndTheRolesSetting(t *testing.T) {
	for name, c := range map[string]struct{ encoding, setting, bytes, want string }{
		"LATIN1, bytes that happen to be UTF-8": {"LATIN1", "", "\xc3\xa9", "Ã©"},
		"LATIN1, bytes that are not UTF-8":      {"LATIN1", "", "R\xfccklauf", "Rücklauf"},
		"WIN1251":                               {"WIN1251", "", "\xd0\xb0", "Р°"},
		"a role that asks for LATIN1":           {"UTF8", "LATIN1", "Rücklauf € ✓", "Rücklauf € ✓"},
		"a role that asks for the bytes":        {"LATIN1", "SQL_ASCII", "\xc3\xa9", "Ã©"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openShopEncoded(t, c.encoding)
			if c.setting != "" {
				s.exec(fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET client_encoding = '%s'", role, s.name, c.setting))
			}
			s.putStatus(1, status(c.bytes))
			for _, r := range []*reader{s.reader(), s.direct(postgres.SourceConfig{})} {
				r.poll()
				r.says(1, c.want)
			}
		})
	}
}

// A pooler need not hand on what a client asks for when it connects.
func TestTextIsUTF8ThroughAPoolerThatIgnoresWhatAClientAsksFor(t *testing.T) {
	s := openShopEncoded(t, "LATIN1")
	s.putStatus(1, status("\xc3\xa9"))
	dsn := server.DSN(role, password, s.name)
	r := openReader(t, dsn+"&options=-c%20client_encoding%3DLATIN1", postgres.SourceConfig{})
	r.poll()
	r.says(1, "Ã©")
}

// Such a database takes any bytes and converts none. With client_encoding UTF8 it would refuse to send a
// chunk with one bad row in it.
func TestOfADatabaseWithoutEncodingTextIsReadThatIsUTF8(t *testing.T) {
	s := openShopEncoded(t, "SQL_ASCII")
	s.putStatus(1, status("Rücklauf"))
	s.putStatus(2, status("R\xfccklauf"))
	s.putStatus(3, "'Complete'")
	r := s.reader()
	r.poll()
	r.says(1, "Rücklauf")
	r.says(3, "Complete")
	if reject := r.rejects[2]; reject.Field != "status" || !strings.Contains(reject.Err, "in valid UTF-8") {
		t.Errorf("order 2: %+v", reject)
	}
}

// WIN1252 has five bytes that stand for no character, and PostgreSQL stores them.
func TestACharacterThatUTF8DoesNotHaveMakesItsRowADeadLetter(t *testing.T) {
	s := openShopEncoded(t, "WIN1252")
	for id := range 50 {
		s.putStatus(id+1, "'Complete'")
	}
	s.exec("UPDATE orders SET status = chr(129) WHERE id IN (1, 20)")
	r := s.reader()
	for range 2 {
		r.poll()
		for _, id := range []int64{1, 20} {
			x := r.rejects[id]
			if x.Field != "status" || !strings.Contains(x.Err, "SQLSTATE 22P05") || strings.Contains(x.Err, "81") {
				t.Errorf("order %d: %+v", id, x)
			}
		}
		if len(r.rows) != 48 || len(r.rejects) != 2 || r.floor == nil {
			t.Errorf("%d rows and %d dead letters, expected 48 and 2; floor %v", len(r.rows), len(r.rejects), r.floor)
		}
		s.putStatus(100, "chr(141)")
		s.exec("DELETE FROM orders WHERE id = 100")
	}
}

// Twice as long in UTF-8 as where it is stored, so no length in the database says that it is too long.
func TestARowThatIsTooLongOnlyInUTF8IsADeadLetter(t *testing.T) {
	s := openShopEncoded(t, "LATIN1")
	s.putStatus(1, fmt.Sprintf("repeat(%s, 6 << 20)", status("\xfc")))
	s.putStatus(2, "'Complete'")
	r := s.reader()
	r.poll()
	r.says(2, "Complete")
	if reject := r.rejects[1]; !strings.Contains(reject.Err, "status has 12582912 bytes") {
		t.Errorf("order 1: %q", reject.Err)
	}
}
