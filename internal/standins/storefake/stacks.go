package storefake

import "fmt"

// Stack is a framework for services, by its language. Its habits are the framework's defaults, or what most
// of its users set.
type Stack string

// Stacks.
const (
	Python Stack = "python"
	Node   Stack = "node"
	Java   Stack = "java"
	Dotnet Stack = "dotnet"
	PHP    Stack = "php"
)

// Stacks are all of them.
var Stacks = []Stack{Python, Node, Java, Dotnet, PHP}

// About names the sources of each stack's habits.
var About = map[Stack]string{
	Python: "FastAPI's 422 with detail; decimals as strings and 404 past the end, as Django REST\n" +
		"framework has them; isoformat's +00:00; NaN for null, as json.dumps writes what pandas reads;\n" +
		"Django's APPEND_SLASH",
	Node: "int8, count(*) and numeric as strings, as node-postgres gives them; toISOString's .000Z; Nest's\n" +
		"statusCode, message and error",
	Java: "OffsetDateTime.toString, which leaves out seconds that are 0; Jackson's BigDecimal 1E+3, and its\n" +
		"NON_NULL; Spring Boot's error body, which has no message",
	Dotnet: "the seven digits of ToString(\"O\"); ASP.NET Core's camelCase and ProblemDetails; a byte\n" +
		"order mark, as a StreamWriter with Encoding.UTF8 writes it",
	PHP: "Laravel's .000000Z, decimal casts as strings, 422 with errors and X-RateLimit headers;\n" +
		"has_more 1 and 0; data: null; MySQL's 0000-00-00 00:00:00; a redirect to the path with a slash",
}

// stackForms are the habits of each stack, and the other readings that it changes.
var stackForms = map[Stack]struct {
	habits  Habits
	money   MoneyForm
	pastEnd PastEnd
}{
	Python: {Habits{Times: TimesPython, Nulls: NullNaN, Errors: ErrorFastAPI, Slash: true}, MoneyString,
		PastEndNotFound},
	Node: {Habits{Times: TimesJS, Integers: IntegerString, Meta: MetaString, Errors: ErrorNest}, MoneyString,
		PastEndEmpty},
	Java: {Habits{Times: TimesJava, Nulls: NullAbsent, Surplus: true, Errors: ErrorSpring}, MoneyStripped,
		PastEndEmpty},
	Dotnet: {Habits{Times: TimesDotnet, Case: CaseCamel, Mark: true, Errors: ErrorProblem}, MoneyAsIs,
		PastEndEmpty},
	PHP: {Habits{Times: TimesLaravel, Nulls: NullZero, More: MoreNumber, Empty: EmptyNull, Errors: ErrorLaravel,
		Slash: true, RateHeaders: true}, MoneyString, PastEndEmpty},
}

// Apply sets the habits of s, the form of money and the answer past the end. It leaves the other readings as
// they are, and Habits.Fractions.
func (s Stack) Apply(r *Readings) error {
	forms, ok := stackForms[s]
	if !ok {
		return fmt.Errorf("stack %q: expected one of %q", s, Stacks)
	}
	forms.habits.Fractions = r.Habits.Fractions
	r.Habits, r.MoneyForm, r.PastEnd = forms.habits, forms.money, forms.pastEnd
	return nil
}
