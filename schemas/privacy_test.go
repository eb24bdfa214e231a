package schemas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

const testKey = "a key of thirty-two bytes or more"

// protected is the built-in schemas under these policies.
func protected(t testing.TB, fields map[string]Policy) *Set {
	t.Helper()
	set := load(t)
	if mistakes := set.Protect(Privacy{Fields: fields, Key: []byte(testKey)}); mistakes != nil {
		t.Fatal(mistakes)
	}
	return set
}

func hmacOf(text string) string {
	mac := hmac.New(sha256.New, []byte(testKey))
	_, _ = mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func jsonOf(t testing.TB, r *Resource, value []byte) map[string]any {
	t.Helper()
	reader, err := NewValueReader(r, "")
	if err != nil {
		t.Fatal(err)
	}
	v, err := reader.Read(value)
	if err != nil {
		t.Fatal(err)
	}
	var row map[string]any
	if err := json.Unmarshal(v.AppendJSON(nil, false), &row); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestAPolicySaysWhatOfAFieldIsEncoded(t *testing.T) {
	users := protected(t, map[string]Policy{"users.email": PolicyHash, "users.first_name": PolicyMask,
		"users.last_name": PolicyHash, "users.postal_code": PolicyMask, "users.street_address": PolicyMask,
		"users.age": PolicyDrop, "users.latitude": PolicyDrop, "users.city": PolicyClear}).Get("users")
	long := strings.Repeat("Ä1", 100) // its length takes two bytes, and half as many when it is masked
	row := `{"id":7,"email":"ana@example.org","first_name":"Ana-Lúcia 2nd","last_name":null,` +
		`"postal_code":"` + long + `","street_address":"","age":34,"latitude":-23.5,"city":"Olinda",` +
		`"country":"Brasil",` + times + `}`
	rec, rej := NewRowParser(users).Parse([]byte(row))
	if rej != nil {
		t.Fatal(rej.Field, rej.Err)
	}
	got := jsonOf(t, users, rec.Value)
	for field, want := range map[string]any{"id": 7.0, "email": hmacOf("ana@example.org"),
		"first_name": "xxx-xxxxx 9xx", "last_name": nil, "postal_code": strings.Repeat("x9", 100),
		"street_address": "", "age": nil, "latitude": nil, "city": "Olinda", "country": "Brasil",
		"updated_at": "2026-11-20T17:02:31.123Z"} {
		if got[field] != want {
			t.Errorf("%s is %v, expected %v", field, got[field], want)
		}
	}
}

func TestPoliciesEncodeARowFromEitherSourceToTheSameBytes(t *testing.T) {
	for _, policy := range []Policy{PolicyClear, PolicyMask, PolicyHash, PolicyDrop} {
		orders := protected(t, map[string]Policy{"orders.status": policy}).Get("orders")
		fromREST, rej := NewRowParser(orders).Parse([]byte(`{"id":1,"status":"Shipped",` +
			`"created_at":"2000-01-01T00:00:00Z","updated_at":"2000-01-01T00:00:00Z"}`))
		d, err := NewColumnDecoder(orders, []column{col("id", pgtype.Int8OID), col("status", pgtype.TextOID),
			col("created_at", pgtype.TimestamptzOID), col("updated_at", pgtype.TimestamptzOID)})
		if err != nil || rej != nil {
			t.Fatal(err, rej)
		}
		epoch := make([]byte, 8)
		fromPostgres, rej := d.Decode([][]byte{{0, 0, 0, 0, 0, 0, 0, 1}, []byte("Shipped"), epoch, epoch})
		if rej != nil || string(fromREST.Value) != string(fromPostgres.Value) {
			t.Errorf("%s: %x from REST, %x from PostgreSQL (%+v)", policy, fromREST.Value, fromPostgres.Value,
				rej)
		}
	}
}

func TestAPolicyThatCannotBeIsNamedWithWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		say    string
	}{
		"users.emial":      {PolicyHash, "no such field: expected one of id, first_name"},
		"user.email":       {PolicyHash, "no such resource: expected resource.field with one of orders, "},
		"email":            {PolicyHash, "no such resource"},
		"users.email":      {"encrypt", `policy "encrypt": expected clear, mask, hash or drop`},
		"users.age":        {PolicyHash, "hash is for text, and this is an integer: expected drop or clear"},
		"users.latitude":   {PolicyMask, "mask is for text, and this is a double: expected drop or clear"},
		"users.id":         {PolicyDrop, "storestream needs it"},
		"users.updated_at": {PolicyMask, "storestream needs it"},
		"users.created_at": {PolicyDrop, "storestream needs it"},
	} {
		set := load(t)
		got := set.Protect(Privacy{Fields: map[string]Policy{name: c.policy, "users.city": PolicyDrop}})
		if len(got) != 1 || !strings.HasPrefix(got[0], name+": ") || !strings.Contains(got[0], c.say) {
			t.Errorf("%s: %q", name, got)
		}
		if set.Get("users").PolicyFingerprint() != "" {
			t.Errorf("%s: other policies are applied", name)
		}
	}
}

func TestTheFingerprintTellsPoliciesAndKeysFromOthers(t *testing.T) {
	of := func(key string, fields map[string]Policy) string {
		set := load(t)
		set.Protect(Privacy{Fields: fields, Key: []byte(key)})
		return set.Get("users").PolicyFingerprint()
	}
	one := of(testKey, map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop})
	if one == "" || one != of(testKey, map[string]Policy{"users.city": PolicyDrop, "users.email": PolicyHash,
		"users.age": PolicyClear, "orders.status": PolicyDrop}) {
		t.Error("the same policies have two fingerprints, or none")
	}
	seen := map[string]bool{one: true}
	for _, other := range []string{
		of(testKey+"2", map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop}),
		of(testKey, map[string]Policy{"users.email": PolicyHash}), of(testKey, nil),
		of(testKey, map[string]Policy{"users.email": PolicyMask, "users.city": PolicyDrop})} {
		if seen[other] {
			t.Errorf("%q is the fingerprint of two policies", other)
		}
		seen[other] = true
	}
	dropped := map[string]Policy{"users.city": PolicyDrop}
	if of("one", dropped) != of("two", dropped) {
		t.Error("the key changes the fingerprint although no field is hashed")
	}
}

// The vectors of RFC 4231 (4.2, 4.3, 4.7 and 4.8: their texts are UTF-8), with keys that are shorter and
// longer than a block. Parsers of one resource have one key and run at once, so each needs a hash of its own.
func TestAHashIsTheHMACOfTheStandardInEveryParser(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{strings.Repeat("\x0b", 20), "Hi There",
			"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{"Jefe", "what do ya want for nothing?",
			"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{strings.Repeat("\xaa", 131), "Test Using Larger Than Block-Size Key - Hash Key First",
			"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{strings.Repeat("\xaa", 131), "This is a test using a larger than block-size key and a larger than " +
			"block-size data. The key needs to be hashed before being used by the HMAC algorithm.",
			"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	} {
		set := load(t)
		set.Protect(Privacy{Fields: map[string]Policy{"users.email": PolicyHash, "users.city": PolicyHash},
			Key: []byte(c.key)})
		users := set.Get("users")
		row := []byte(`{"id":7,"email":"` + c.text + `","city":"` + c.text + `",` + times + `}`)
		var parsers sync.WaitGroup
		for range 4 {
			parsers.Go(func() {
				for p, i := NewRowParser(users), 0; i < 100; i++ {
					rec, rej := p.Parse(row)
					if rej != nil {
						t.Error(rej.Field, rej.Err)
						return
					}
					if got := jsonOf(t, users, rec.Value); got["email"] != c.want || got["city"] != c.want {
						t.Errorf("%q under a key of %d bytes: got %s and %s, want %s", c.text, len(c.key), got["email"],
							got["city"], c.want)
					}
				}
			})
		}
		parsers.Wait()
	}
}

// In Go's mode fips140=only an HMAC with an empty key panics.
func TestWithoutAHashNoHMACIsMade(t *testing.T) {
	for _, r := range load(t).All() {
		p := NewRowParser(r)
		if _, rej := p.Parse([]byte(`{"id":7}`)); rej == nil || p.mac != nil {
			t.Errorf("%s: reject %v, HMAC %v", r.Name, rej, p.mac)
		}
	}
}

// A row that cannot be published goes to the dead letters. More people may read them than the topic.
func TestARejectShowsNoMoreThanTheTopicWould(t *testing.T) {
	fields := map[string]Policy{"users.email": PolicyHash, "users.city": PolicyDrop, "users.state": PolicyMask,
		"users.country": PolicyHash}
	const row = `{"id":7,"first_name":"Ana","email":"ana@example.org","age":34.5,"city":"Olinda",` +
		`"state":"PE 1","country":12,"postal_code":null,"gender":{"a":"F"},"tax_number":"123",` +
		`"traffic_source":{"contact_email":"ana@example.org"},` + times + `}`
	set := protected(t, fields)
	_, rej := NewRowParser(set.Get("users")).Parse([]byte(row))
	want := `{"id":7,"first_name":"xxx","email":"` + hmacOf("ana@example.org") + `","age":"99.9","city":null,` +
		`"state":"xx 9","country":"99","postal_code":null,"gender":"(9 bytes, left out)",` +
		`"traffic_source":"(35 bytes, left out)",` +
		times + `}`
	if rej == nil || string(rej.Row) != want {
		t.Errorf("got  %s\nwant %s", rej.Row, want)
	}

	set.Protect(Privacy{FullRejects: true})
	_, rej = NewRowParser(set.Get("users")).Parse([]byte(row))
	want = strings.NewReplacer(`"tax_number":"123",`, "", `{"a":"F"}`, `"(9 bytes, left out)"`,
		`{"contact_email":"ana@example.org"}`, `"(35 bytes, left out)"`).Replace(row)
	if string(rej.Row) != want {
		t.Errorf("in full: got  %s\nwant %s", rej.Row, want)
	}

	fields = map[string]Policy{"orders.status": PolicyHash, "orders.user_id": PolicyDrop}
	d, err := NewColumnDecoder(protected(t, fields).Get("orders"), []column{col("id", pgtype.Int8OID),
		col("status", pgtype.TextOID), col("user_id", pgtype.Int8OID), col("created_at", pgtype.TimestamptzOID),
		col("updated_at", pgtype.TimestamptzOID)})
	if err != nil {
		t.Fatal(err)
	}
	eight := make([]byte, 8)
	_, rej = d.Decode([][]byte{eight, []byte("Shipped"), eight, nil, eight})
	want = `{"id":"0","status":"` + hmacOf("Shipped") + `","user_id":null,"created_at":null,` +
		`"updated_at":"2000-01-01T00:00:00.000000Z"}`
	if rej == nil || string(rej.Row) != want {
		t.Errorf("got  %s\nwant %s", rej.Row, want)
	}
}

// A service, or a view, whose columns have moved shows each value in the place of another field, which has no
// mark and no policy.
func TestWhereverAShiftedColumnPutsAPersonalValueARejectDoesNotShowIt(t *testing.T) {
	personal := map[string]string{"first_name": `"Eulalia"`, "last_name": `"Planted"`,
		"email": `"jane.doe@example.org"`, "street_address": `"12 Rose Street"`, "postal_code": `"SW1A 2AA"`,
		"city": `"Olinda"`, "gender": `"Quince"`, "latitude": `-23.5505`,
		"longitude": `"-46.6333"`}
	for name, policies := range map[string]map[string]Policy{"no policy": nil,
		"policies": {"users.email": PolicyHash, "users.city": PolicyDrop, "users.last_name": PolicyMask}} {
		users := protected(t, policies).Get("users")
		columns := users.Columns()
		for shift := range columns {
			row := map[string]json.RawMessage{}
			for i, column := range columns {
				to := columns[(i+shift)%len(columns)]
				row[to] = json.RawMessage(`"2026-11-20T17:02:31Z"`)
				if value, is := personal[column]; is {
					row[to] = json.RawMessage(value)
				}
			}
			raw, _ := json.Marshal(row)
			_, rej := NewRowParser(users).Parse(raw)
			if rej == nil {
				t.Fatalf("%s, by %d: %s is taken", name, shift, raw)
			}
			for field, value := range personal {
				if strings.Contains(string(rej.Row)+rej.Err, strings.Trim(value, `"`)) || rej.HasID {
					t.Errorf("%s, by %d: %s is shown, or an id is read: %s: %s", name, shift, field, rej.Err,
						rej.Row)
				}
			}
		}
	}

	// Policies hold where personal fields are wanted whole.
	const row = `{"id":"jane@example.org","first_name":"Ana","created_at":"jane@example.org",` +
		`"updated_at":{"is":"jane@example.org"}}`
	const want = `{"id":"xxxx@xxxxxxx.xxx","first_name":"Ana","created_at":"xxxx@xxxxxxx.xxx",` +
		`"updated_at":"(25 bytes, left out)"}`
	set := load(t)
	set.Protect(Privacy{Fields: map[string]Policy{"users.email": PolicyHash}, Key: []byte(testKey),
		FullRejects: true})
	if _, rej := NewRowParser(set.Get("users")).Parse([]byte(row)); string(rej.Row) != want {
		t.Errorf("in full: %s", rej.Row)
	}
	set.Protect(Privacy{FullRejects: true})
	whole := strings.Replace(row, `{"is":"jane@example.org"}`, `"(25 bytes, left out)"`, 1)
	if _, rej := NewRowParser(set.Get("users")).Parse([]byte(row)); string(rej.Row) != whole {
		t.Errorf("in full and without policies: %s", rej.Row)
	}

	// A column of text takes anything. orders have no personal field of their own.
	d, err := NewColumnDecoder(load(t).Get("orders"), []column{col("id", pgtype.Int8OID),
		col("user_id", pgtype.TextOID), col("status", pgtype.TextOID), col("created_at", pgtype.TextOID),
		col("updated_at", pgtype.TimestamptzOID)})
	if err != nil {
		t.Fatal(err)
	}
	eight := make([]byte, 8)
	_, rej := d.Decode([][]byte{eight, []byte("Eulalia"), []byte("Shipped"), []byte("jane@example.org"), eight})
	if got := `{"id":"0","user_id":"xxxxxxx","status":"Shipped","created_at":"xxxx@xxxxxxx.xxx",` +
		`"updated_at":"2000-01-01T00:00:00.000000Z"}`; rej == nil || string(rej.Row) != got {
		t.Errorf("%s", rej.Row)
	}
}

func TestOfARowThatIsNotWellFormedTheFieldsBeforeTheFaultAreShown(t *testing.T) {
	const row = `{"id":7,"email":"ana@example.org","age":1 "city":"Olinda"`
	set := load(t)
	_, rej := NewRowParser(set.Get("users")).Parse([]byte(row))
	if want := `{"id":7,"email":"xxx@xxxxxxx.xxx","age":"9"}`; string(rej.Row) != want {
		t.Errorf("%s", rej.Row)
	}
	set.Protect(Privacy{FullRejects: true})
	_, rej = NewRowParser(set.Get("users")).Parse([]byte(row))
	if want := `{"id":7,"email":"ana@example.org","age":1}`; string(rej.Row) != want {
		t.Errorf("in full: %s", rej.Row)
	}
}

func TestPoliciesAllocateNothing(t *testing.T) {
	set := protected(t, map[string]Policy{"users.email": PolicyHash, "users.first_name": PolicyMask,
		"users.last_name": PolicyHash, "users.street_address": PolicyHash, "users.age": PolicyDrop})
	most := .1
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings,
		debug.BuildSetting{Key: "-race", Value: "true"}) {
		// There the compiler makes a slice for append(b, make([]byte, n)...), with which crypto/sha256 writes its
		// state: twice for a hash. make test-long looks without the race detector.
		most = 6
	}
	p, raw := NewRowParser(set.Get("users")), []byte(benchUser)
	if n := testing.AllocsPerRun(1000, func() { _, _ = p.Parse(raw) }); n > most {
		t.Errorf("a row takes %v allocations", n)
	}
}

// A mask keeps the number of characters, and no letter or digit.
func FuzzMask(f *testing.F) {
	f.Add([]byte("Ana-Lúcia 2nd"))
	f.Add([]byte("\xff\xfe e\u0301 \U0001F600"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := string(appendMasked(nil, text))
		if len(got) != utf8.RuneCount(text) {
			t.Fatalf("%q became %q", text, got)
		}
		kept := func(c rune) bool {
			return c == 'x' || c == '9' || c < utf8.RuneSelf && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}
		if strings.ContainsFunc(got, func(c rune) bool { return !kept(c) }) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
