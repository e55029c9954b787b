/**
 * Checks what product files ask for. A class is given few objects, each of which it uses: an interface
 * of dependencies, with what else the constructor takes, has at most six fields, and only the files that put everything
 * together see all of it. Nothing is filled in after it was made: what two objects share is made before both.
 * Of objects that have much to offer a file picks what it uses, at most six members. Prints the widest interface, the
 * most members and the number of slots; exits 1 if there is too much of any.
 */
import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Class, parseSync, type TSSignature, type TSType, Visitor } from 'oxc-parser'
import { pickedBy, takenIn } from './taken-members.ts'

/** What one class or function may ask for at most. */
const mostFields = 6
/** Interfaces that list dependencies. */
const dependencies = /(Dependencies|Deps|Parts)$/
/** Packages that are held to this. */
const sources = 'packages/{operator,provider,provider-*,cluster-autoscaler,devcluster,cli}/src/**/*.ts'
/** Puts objects together, and is given all that there is. */
const composition =
  /^packages\/(operator\/src\/(composition\/[^/]+|controllers|operator)|cli\/src\/commands\/compose-operator)\.ts$/

/** What an interface of dependencies lists, or a class is given. */
export interface Asked {
  readonly name: string
  readonly line: number
  readonly fields: number
}

/** A member that others fill in, or may. */
export interface Slot {
  readonly name: string
  readonly line: number
}

/** What a file asks for, and what it leaves to be filled in. */
export interface Findings {
  readonly asked: readonly Asked[]
  readonly slots: readonly Slot[]
  /** Lines that import what only the composition may know. */
  readonly reaching: readonly number[]
}

/** Reads one source file. */
export function findingsIn(path: string, text: string): Findings {
  const asked: Asked[] = []
  const slots: Slot[] = []
  const lineOf = (offset: number) => text.slice(0, offset).split('\n').length
  const widths = new Map<string, number>()
  const list = (name: string, start: number, fields: number) => {
    if (!dependencies.test(name)) return
    widths.set(name, fields)
    asked.push({ name, line: lineOf(start), fields })
  }
  const classes: Class[] = []
  const see = (node: Class) => {
    classes.push(node)
    slots.push(...slotsOf(node).map(({ name, start }) => ({ name, line: lineOf(start) })))
  }
  const { program, module } = parseSync(path, text)
  new Visitor({
    TSInterfaceDeclaration({ id, body, start, extends: bases }) {
      // What another one lists is not seen here: it counts as too much.
      list(id.name, start, bases.length > 0 ? Number.POSITIVE_INFINITY : body.body.length)
      for (const member of body.body)
        if (isSlotSignature(member)) slots.push({ name: id.name, line: lineOf(member.start) })
    },
    TSTypeAliasDeclaration({ id, typeAnnotation: type, start }) {
      list(id.name, start, fieldsOf(type))
    },
    ClassDeclaration: see,
    ClassExpression: see,
  }).visit(program)
  for (const { id, start, fields } of classes.map((node) => givenTo(node, widths)))
    if (fields > 0) asked.push({ name: id, line: lineOf(start), fields })
  const reaching = module.staticImports
    .filter(({ moduleRequest: { value } }) => /(^|\/)composition\/[^/]+$/.test(value))
    .map(({ start }) => lineOf(start))
  return { asked, slots, reaching }
}

/** How many fields a type has, as far as it tells without another file. */
function fieldsOf(type: TSType): number {
  if (type.type === 'TSTypeLiteral') return type.members.length
  const picked = pickedBy(type)
  return picked.length > 0 ? picked.length : Number.POSITIVE_INFINITY
}

/** What the constructor takes beside an interface of dependencies, together with what that lists. */
function givenTo(
  { id, body: { body }, start }: Class,
  widths: ReadonlyMap<string, number>,
): { readonly id: string; readonly start: number; readonly fields: number } {
  const name = id?.name ?? 'class'
  for (const member of body) {
    if (member.type !== 'MethodDefinition' || member.kind !== 'constructor') continue
    const { params } = member.value
    const [first] = params
    const type = first !== undefined && 'typeAnnotation' in first ? first.typeAnnotation : undefined
    const listed = widths.get(nameOf(type?.typeAnnotation) ?? '')
    if (listed !== undefined) return { id: name, start, fields: listed + params.length - 1 }
  }
  return { id: name, start, fields: 0 }
}

function nameOf(type: TSType | undefined): string | undefined {
  return type?.type === 'TSTypeReference' && type.typeName.type === 'Identifier'
    ? type.typeName.name
    : undefined
}

/** Members of a class that others may set, and that are functions or may have some. */
function slotsOf({ body: { body } }: Class): readonly { readonly name: string; readonly start: number }[] {
  return body.flatMap((member) => {
    if (member.type !== 'PropertyDefinition' || member.readonly || member.static) return []
    const { key, value, typeAnnotation, accessibility, start } = member
    if (key.type !== 'Identifier' || accessibility === 'private') return []
    const isFunction = value?.type === 'ArrowFunctionExpression' || value?.type === 'FunctionExpression'
    const type = typeAnnotation?.typeAnnotation
    const isSlot = isFunction || isFunctionType(type) || isNamedType(type)
    return isSlot ? [{ name: key.name, start }] : []
  })
}

/** Whether an object may be given this function after it was made. */
function isSlotSignature(member: TSSignature): boolean {
  if (member.type !== 'TSPropertySignature' || member.readonly) return false
  return isFunctionType(member.typeAnnotation?.typeAnnotation)
}

function isFunctionType(type: TSType | undefined): boolean {
  if (type === undefined) return false
  if (type.type === 'TSUnionType') return type.types.some(isFunctionType)
  if (type.type === 'TSParenthesizedType') return isFunctionType(type.typeAnnotation)
  return type.type === 'TSFunctionType'
}

/** Something of a type with a name may have functions; a record of data has none. */
function isNamedType(type: TSType | undefined): boolean {
  if (type?.type === 'TSUnionType') return type.types.some(isNamedType)
  return type?.type === 'TSTypeReference' && nameOf(type) !== 'Record'
}

async function check(): Promise<void> {
  const root = resolve(import.meta.dirname, '..')
  let widest = { fields: 0, place: 'nothing' }
  let slotCount = 0
  let violations = 0
  let most = 0
  for await (const found of glob(sources, { cwd: root })) {
    const path = found.replaceAll('\\', '/')
    if (/\.test\.ts$|\.test-support\.ts$/.test(path)) continue
    const text = readFileSync(resolve(root, path), 'utf8')
    const { asked, slots, reaching } = findingsIn(path, text)
    for (const { name, line, fields } of asked) {
      const place = `${path}:${line} ${name}`
      if (fields > widest.fields) widest = { fields, place }
      if (fields <= mostFields) continue
      violations++
      console.error(`${place} asks for ${fields} objects, at most ${mostFields}: take collaborators instead`)
    }
    const taken = composition.test(path) ? [] : takenIn(path, text)
    for (const { field, line, whole, members, unused } of taken) {
      const place = `${path}:${line} "${field}"`
      most = Math.max(most, members.length)
      const problems = [
        ...whole.map((name) => `takes all of ${name}: pick the members that are used`),
        ...unused.map((name) => `lists "${name}", which the file does not use`),
        ...(members.length > mostFields ? [`picks ${members.length} members, at most ${mostFields}`] : []),
      ]
      violations += problems.length
      for (const problem of problems) console.error(`${place} ${problem}`)
    }
    for (const { name, line } of slots) {
      slotCount++
      console.error(`${path}:${line} "${name}" is filled in later: make what is shared before both`)
    }
    for (const line of composition.test(path) ? [] : reaching) {
      violations++
      console.error(`${path}:${line} imports from composition/, which is given everything: take what is used`)
    }
  }
  console.log(
    `dependencies: widest ${widest.fields} (${widest.place}), at most ${most} members of one object, ${slotCount} callback slot(s)`,
  )
  process.exitCode = violations + slotCount === 0 ? 0 : 1
}

if (import.meta.main) await check()
