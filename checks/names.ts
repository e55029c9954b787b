/**
 * Users choose names (of labels, resources, taints, keys of ConfigMaps), and `constructor`, `toString` or
 * `__proto__` exist in every plain object. Finds computed lookups and writes of such names in plain objects;
 * use `ownValue` and `setOwn` of @tenon/api, a Map or Object.hasOwn instead. Prints one line per place and
 * exits 1 if there is any.
 */
import { relative, resolve } from 'node:path'
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast'
import { API, type Project, type Type, TypeFlags } from 'typescript/unstable/sync'

const root = resolve(import.meta.dirname, '..')
/** Without tests, which load half as much again. */
const product = resolve(import.meta.dirname, 'tsconfig.product.json')
/** Packages that handle names chosen by users. */
const checked = /^(packages|simulators|test)\/[^/]+\/src\/.*\.ts$/
/** Tests, generated files, planted bugs, and the implementation of the safe functions. */
const exempt = /\.test\.ts$|test-support|\/testing\/|\/protobuf\/|\/planted\/|^packages\/api\/src\/own\.ts$/

/** An access by a computed name. */
interface Place {
  readonly node: Node
  readonly object: Node
  readonly key: Node
  readonly kind: 'read' | 'write' | 'in'
}

function parts(node: Node): { readonly left: Node; readonly operator: SyntaxKind; readonly right: Node } {
  const { left, operatorToken, right } = node as unknown as { left: Node; operatorToken: Node; right: Node }
  return { left, operator: operatorToken.kind, right }
}

const isAssignment = (kind: SyntaxKind): boolean =>
  kind >= SyntaxKind.FirstAssignment && kind <= SyntaxKind.LastAssignment

const isLiteral = ({ kind }: Node): boolean =>
  kind === SyntaxKind.NumericLiteral || kind === SyntaxKind.StringLiteral

function placesIn(file: SourceFile): readonly Place[] {
  const found: Place[] = []
  const visit = (node: Node, parent: Node | undefined): void => {
    if (node.kind === SyntaxKind.ElementAccessExpression) {
      const { expression, argumentExpression } = node as unknown as {
        expression: Node
        argumentExpression: Node
      }
      const isWritten =
        parent?.kind === SyntaxKind.BinaryExpression &&
        isAssignment(parts(parent).operator) &&
        parts(parent).left === node
      if (parent?.kind !== SyntaxKind.DeleteExpression && !isLiteral(argumentExpression))
        found.push({ node, object: expression, key: argumentExpression, kind: isWritten ? 'write' : 'read' })
    } else if (node.kind === SyntaxKind.BinaryExpression && parts(node).operator === SyntaxKind.InKeyword) {
      const { left, right } = parts(node)
      found.push({ node, object: right, key: left, kind: 'in' })
    }
    node.forEachChild((child) => {
      visit(child, node)
      return undefined
    })
  }
  visit(file, undefined)
  return found
}

/** Whether a key of this type may be any name. */
function isAnyName(type: Type | undefined): boolean {
  if (type === undefined) return false
  if ((type.flags & TypeFlags.Union) !== 0)
    return (type as unknown as { getTypes(): readonly Type[] }).getTypes().some(isAnyName)
  return (type.flags & (TypeFlags.String | TypeFlags.TemplateLiteral | TypeFlags.TypeParameter)) !== 0
}

/** Whether the type is a plain object used as a dictionary. */
function isDictionary(project: Project, type: Type | undefined): boolean {
  if (type === undefined) return false
  const { checker } = project
  const present = checker.getNonNullableType(type) ?? type
  return checker.getIndexInfosOfType(present).some(({ keyType }) => (keyType.flags & TypeFlags.String) !== 0)
}

export interface Finding {
  readonly path: string
  readonly line: number
  readonly kind: Place['kind']
  readonly place: Place
  readonly text: string
}

export function findings(): readonly Finding[] {
  const api = new API({ cwd: root })
  try {
    const [project] = api.updateSnapshot({ openProject: product }).getProjects()
    if (project === undefined) throw new Error(`${product} opens no project`)
    const found: Finding[] = []
    for (const name of project.program.getSourceFileNames()) {
      const path = relative(root, name)
      if (!checked.test(path) || exempt.test(path)) continue
      const file = project.program.getSourceFile(name)
      if (file === undefined) continue
      const places = placesIn(file)
      const keys = project.checker.getTypeAtLocation(places.map(({ key }) => key))
      const open = places.filter((_, at) => isAnyName(keys[at]))
      const objects = project.checker.getTypeAtLocation(open.map(({ object }) => object))
      for (const [at, place] of open.entries()) {
        if (place.kind !== 'in' && !isDictionary(project, objects[at])) continue
        const start = place.node.getStart(file)
        const line = file.text.slice(0, start).split('\n').length
        found.push({ path, line, kind: place.kind, place, text: file.text.slice(start, place.node.end) })
      }
    }
    return found
  } finally {
    api.close()
  }
}

if (import.meta.main) {
  const found = findings()
  for (const { path, line, kind, text } of found)
    console.error(
      `${path}:${line} ${kind === 'write' ? 'writes' : 'looks up'} a name in a plain object: ${text.split('\n')[0]}`,
    )
  console.error(`names: ${found.length} violation(s)`)
  process.exitCode = found.length === 0 ? 0 : 1
}
