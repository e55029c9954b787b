/** What product files take of objects that have much to offer, and whether they use it. */
import {
  type Argument,
  type Expression,
  parseSync,
  type TSInterfaceDeclaration,
  type TSLiteralType,
  type TSType,
  type TSTypeReference,
  Visitor,
} from 'oxc-parser'

/** Interfaces that list dependencies. */
const dependencies = /(Dependencies|Deps|Parts)$/
/** Objects of which nobody needs everything. */
const wide: ReadonlySet<string> = new Set([
  'Caches',
  'CloudProvider',
  'ClusterMetrics',
  'ClusterState',
  'KubeClient',
  'Kubernetes',
  'Metrics',
  'Settings',
])

/** A field of dependencies, and what is taken of it. */
export interface Taken {
  readonly field: string
  readonly line: number
  /** Names of wide objects that are taken whole. */
  readonly whole: readonly string[]
  /** Members that are picked of wide objects. */
  readonly members: readonly string[]
  /** Members, or the field itself, that the file neither uses nor passes on. */
  readonly unused: readonly string[]
}

/** Members that `Pick<X, 'a' | 'b'>` names; none for another type. */
export function pickedBy(type: TSType): readonly string[] {
  if (type.type !== 'TSTypeReference' || nameOf(type) !== 'Pick') return []
  return literalsOf(type.typeArguments?.params[1])
}

/** Reads one source file. */
export function takenIn(path: string, text: string): readonly Taken[] {
  const { program } = parseSync(path, text)
  const interfaces: TSInterfaceDeclaration[] = []
  const listed: TSInterfaceDeclaration[] = []
  const picked: { readonly field: string; readonly start: number }[] = []
  const uses = new Uses()
  new Visitor({
    TSInterfaceDeclaration(node) {
      interfaces.push(node)
      if (dependencies.test(node.id.name)) listed.push(node)
    },
    TSTypeAliasDeclaration({ id, typeAnnotation: type, start }) {
      if (!dependencies.test(id.name)) return
      for (const field of pickedBy(type)) picked.push({ field, start })
    },
    TSTypeAnnotation({ typeAnnotation: type, start }) {
      if (type.type === 'TSTypeReference') uses.typed.push({ name: nameOf(type), start })
    },
    MemberExpression({ computed, property }) {
      if (!computed && 'name' in property) uses.used.add(property.name)
    },
    ObjectPattern({ properties }) {
      for (const property of properties)
        if (property.type === 'Property' && property.key.type === 'Identifier')
          uses.used.add(property.key.name)
    },
    FunctionDeclaration({ id }) {
      if (id !== null) uses.local.add(id.name)
    },
    CallExpression({ callee, arguments: given }) {
      uses.passOn(given, callee.type === 'Identifier' ? callee.name : undefined)
    },
    NewExpression: ({ arguments: given }) => uses.passOn(given),
    SpreadElement: ({ argument }) => uses.passOn([argument]),
    ObjectExpression({ properties }) {
      for (const property of properties) if (property.type === 'Property') uses.passOn([property.value])
    },
    ArrowFunctionExpression: ({ body }) => uses.passOn(body.type === 'BlockStatement' ? [] : [body]),
    ReturnStatement: ({ argument }) => uses.passOn(argument === null ? [] : [argument]),
  }).visit(program)
  const lineOf = (offset: number) => text.slice(0, offset).split('\n').length
  const isInInterface = (at: number) => interfaces.some(({ start, end }) => start < at && at < end)
  const code = new Set(uses.typed.filter(({ start }) => !isInInterface(start)).map(({ name }) => name))
  const ofPicks = picked.map(({ field, start }): Taken => {
    return { field, line: lineOf(start), whole: [], members: [], unused: uses.unusedOf(field, []) }
  })
  const ofInterfaces = listed.flatMap(({ id, body: { body } }) =>
    body.flatMap((member): readonly Taken[] => {
      if (member.type !== 'TSPropertySignature' || member.key.type !== 'Identifier') return []
      const { name: field } = member.key
      const { whole, members } = takenOf(member.typeAnnotation?.typeAnnotation)
      // What is declared here for other files is used there.
      const unused = code.has(id.name) ? uses.unusedOf(field, members) : []
      return [{ field, line: lineOf(member.start), whole, members, unused }]
    }),
  )
  return [...ofPicks, ...ofInterfaces]
}

/** What is done with names anywhere in a file. */
class Uses {
  readonly used = new Set<string>()
  /** Types of parameters and members, and where. */
  readonly typed: { readonly name: string; readonly start: number }[] = []
  /** Functions of this file: what they are given is used here. */
  readonly local = new Set<string>()
  /** By name, the functions that are given it; undefined for what is no plain call. */
  readonly #passedTo = new Map<string, (string | undefined)[]>()

  passOn(values: readonly (Argument | Expression)[], callee?: string): void {
    for (const value of values) {
      const name = lastNameOf(value)
      if (name === undefined) continue
      const known = this.#passedTo.get(name) ?? []
      this.#passedTo.set(name, [...known, callee])
    }
  }

  unusedOf(field: string, members: readonly string[]): readonly string[] {
    // Whoever is given all of it may use any of it.
    if (['deps', 'dependencies', 'parts'].some((name) => this.#isPassedOn(name))) return []
    if (!this.used.has(field)) return [field]
    // Caches are a member of the Kubernetes API, and those that are read are picked beside it.
    return this.#isPassedOn(field) || this.#isPassedOn('caches')
      ? []
      : members.filter((member) => !this.used.has(member))
  }

  #isPassedOn(name: string): boolean {
    return (this.#passedTo.get(name) ?? []).some((callee) => callee === undefined || !this.local.has(callee))
  }
}

/** `b` of `b`, `a.b` and `a.#b`. */
function lastNameOf(value: Argument | Expression): string | undefined {
  if (value.type === 'Identifier') return value.name
  if (value.type !== 'MemberExpression' || value.computed) return undefined
  return value.property.name
}

function takenOf(type: TSType | undefined): Pick<Taken, 'whole' | 'members'> {
  if (type?.type === 'TSIntersectionType' || type?.type === 'TSUnionType') {
    const parts = type.types.map(takenOf)
    return {
      whole: parts.flatMap(({ whole }) => whole),
      members: parts.flatMap(({ members }) => members),
    }
  }
  if (type?.type !== 'TSTypeReference') return { whole: [], members: [] }
  const name = nameOf(type)
  const [first, second] = type.typeArguments?.params ?? []
  if (name === 'Pick' && first?.type === 'TSTypeReference' && wide.has(nameOf(first))) {
    const inner = (first.typeArguments?.params ?? []).flatMap(literalsOf)
    return { whole: [], members: [...literalsOf(second), ...inner] }
  }
  if (!wide.has(name)) return { whole: [], members: [] }
  return { whole: first === undefined ? [name] : [], members: literalsOf(first) }
}

function nameOf({ typeName }: TSTypeReference): string {
  return typeName.type === 'Identifier' ? typeName.name : ''
}

function literalsOf(type: TSType | undefined): readonly string[] {
  if (type?.type === 'TSUnionType') return type.types.flatMap(literalsOf)
  return type?.type === 'TSLiteralType' ? textOf(type) : []
}

function textOf({ literal }: TSLiteralType): readonly string[] {
  return literal.type === 'Literal' && typeof literal.value === 'string' ? [literal.value] : []
}
