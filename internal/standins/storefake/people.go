package storefake

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

var (
	maleNames = []string{"Adam", "Ben", "Carlos", "David", "Émile", "Felix", "George", "Hiroshi", "Ivan", "Jörg",
		"Kofi", "Luis", "Marek",
		"Noah", "Omar", "Paul", "Søren", "Thomas", "Víctor", "Wei"}
	femaleNames = []string{"Anna", "Beatriz", "Chloé", "Dana", "Elena", "Fatima", "Grace", "Hannah", "Inês",
		"Julia", "Keiko", "Lucía",
		"Maria", "Nadia", "Olga", "Priya", "Rosa", "Sofia", "Yuki", "Zoë"}
	lastNames = []string{"Almeida", "Brown", "Chen", "Davis", "Evans", "Fischer", "García", "Hansen", "Ito",
		"Johnson", "Kim", "López",
		"Müller", "Nguyen", "O'Brien", "Popov", "Quinn", "Rossi", "Smith", "Šimek", "Tanaka", "Usman", "Vega",
		"Williams", "Yılmaz", "Zhang"}
	streets = []string{"Oak Street", "Main Road", "Hill Lane", "Station Avenue", "Park Way", "Mill Court",
		"Lake Drive", "Church Row"}
	mailDomains = []string{"example.com", "example.org", "example.net"}
)

// home is a city with its state and country. The oddities are the real set's: a city that is the text "null",
// one country under two names.
type home struct {
	city, state, country string
	latitude, longitude  float64
}

var homes = []home{
	{"São Paulo", "São Paulo", "Brasil", -23.5505, -46.6333},
	{"Rio Branco", "Acre", "Brasil", -9.9754, -67.8249},
	{"Shanghai", "Shanghai", "China", 31.2304, 121.4737}, {"北京", "Beijing", "China", 39.9042, 116.4074},
	{"null", "Guangdong", "China", 22.5431, 114.0579}, {"null", "Mie", "Japan", 34.7303, 136.5086},
	{"New York", "New York", "United States", 40.7128, -74.006},
	{"Houston", "Texas", "United States", 29.7604, -95.3698},
	{"Cañon City", "Colorado", "United States", 38.441, -105.2424},
	{"Orléans", "Centre-Val de Loire", "France", 47.9029, 1.9039},
	{"Saint-Étienne", "Auvergne-Rhône-Alpes", "France", 45.4397, 4.3872},
	{"Seoul", "Seoul", "South Korea", 37.5665, 126.978},
	{"London", "England", "United Kingdom", 51.5074, -0.1278},
	{"Nürnberg", "Bayern", "Germany", 49.4521, 11.0767},
	{"Berlin", "Berlin", "Deutschland", 52.52, 13.405}, {"A Coruña", "Galicia", "Spain", 43.3623, -8.4115},
	{"Málaga", "Andalucía", "España", 36.7213, -4.4214}, {"Łódź", "Łódzkie", "Poland", 51.7592, 19.456},
	{"Bogotá", "Bogotá", "Colombia", 4.711, -74.0721}, {"東京", "Tokyo", "Japan", 35.6762, 139.6503},
}

var (
	trafficSources = []string{"Search", "Organic", "Facebook", "Email", "Display"}
	sourceOdds     = []float64{.70, .15, .06, .05, .04}
)

// newUser invents a person. id only makes the address unlike most others: some repeat.
func newUser(chance *rand.Rand, id int64, created, updated time.Time) Row {
	gender, first := "M", one(chance, maleNames)
	if chance.IntN(2) == 0 {
		gender, first = "F", one(chance, femaleNames)
	}
	mailbox := fmt.Sprintf("%s.%d", asciiLower(first), id)
	if chance.Float64() < .05 {
		mailbox = fmt.Sprintf("%s.%d", asciiLower(first), chance.IntN(50))
	}
	row := Row{"id": id, "first_name": first, "last_name": one(chance, lastNames),
		"email": mailbox + "@" + one(chance, mailDomains), "age": 12 + int64(chance.IntN(59)), "gender": gender,
		"traffic_source": pick(chance, trafficSources, sourceOdds), "created_at": created, "updated_at": updated}
	moveHouse(chance, row)
	return row
}

// moveHouse gives a user another address.
func moveHouse(chance *rand.Rand, row Row) {
	h := one(chance, homes)
	row["city"], row["state"], row["country"] = h.city, h.state, h.country
	row["latitude"], row["longitude"] = nearby(chance, h.latitude), nearby(chance, h.longitude)
	row["street_address"] = fmt.Sprintf("%d %s", 1+chance.IntN(999), one(chance, streets))
	row["postal_code"] = fmt.Sprintf("%05d", chance.IntN(100000)) // with leading zeros: it is no number
}

// nearby is within about 10 km, with nine decimals as the set has them.
func nearby(chance *rand.Rand, degrees float64) float64 {
	return math.Round((degrees+(chance.Float64()-.5)/5)*1e9) / 1e9
}

// asciiLower keeps the plain letters.
func asciiLower(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case 'A' <= r && r <= 'Z':
			out = append(out, byte(r-'A'+'a'))
		case 'a' <= r && r <= 'z':
			out = append(out, byte(r))
		}
	}
	return string(out)
}
