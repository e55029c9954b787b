/**
 * Holds what a product file of the operator may ask for: an interface or type named `Dependencies` (or ending so) has
 * few fields, so that a class takes what it uses, and nothing is filled in after it was made: what two objects share is
 * made before both. Prints the widest such interface and the number of slots; exits 1 if there is too much of either.
 */
import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Class, parseSync, type TSSignature, type TSType, Visitor } from 'oxc-parser'

/** Fields of one interface of dependencies at most. */
const mostFields = 20

/** An interface of dependencies. */
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
}

/** Reads one source file. */
export function findingsIn(path: string, text: string): Findings {
  const asked: Asked[] = []
  const slots: Slot[] = []
  const lineOf = (offset: number) => text.slice(0, offset).split('\n').length
  const ask = (name: string, start: number, members: readonly TSSignature[]) => {
    if (!/(Dependencies|Parts)$/.test(name)) return
    asked.push({ name, line: lineOf(start), fields: members.length })
  }
  const look = ({ body: { body } }: Class) => {
    for (const member of body) {
      if (member.type !== 'PropertyDefinition' || member.readonly || member.static) continue
      const { key, value, typeAnnotation } = member
      if (key.type !== 'Identifier' || member.accessibility === 'private') continue
      const isCallable =
        value?.type === 'ArrowFunctionExpression' ||
        value?.type === 'FunctionExpression' ||
        mayBeCalled(typeAnnotation?.typeAnnotation)
      if (isCallable) slots.push({ name: key.name, line: lineOf(member.start) })
    }
  }
  new Visitor({
    TSInterfaceDeclaration({ id, body, start }) {
      ask(id.name, start, body.body)
    },
    TSTypeAliasDeclaration({ id, typeAnnotation, start }) {
      if (typeAnnotation.type === 'TSTypeLiteral') ask(id.name, start, typeAnnotation.members)
    },
    ClassDeclaration: look,
    ClassExpression: look,
  }).visit(parseSync(path, text).program)
  return { asked, slots }
}

/** Whether something of this type is a function, or an object of a type with a name, which may have one. */
function mayBeCalled(type: TSType | undefined): boolean {
  if (type === undefined) return false
  if (type.type === 'TSUnionType') return type.types.some(mayBeCalled)
  if (type.type === 'TSParenthesizedType') return mayBeCalled(type.typeAnnotation)
  return type.type === 'TSFunctionType' || type.type === 'TSTypeReference'
}

async function check(): Promise<void> {
  const root = resolve(import.meta.dirname, '..')
  let widest = { fields: 0, place: 'nothing' }
  let slotCount = 0
  let violations = 0
  for await (const path of glob('packages/operator/src/**/*.ts', { cwd: root })) {
    if (/\.test\.ts$|\.test-support\.ts$/.test(path)) continue
    const { asked, slots } = findingsIn(path, readFileSync(resolve(root, path), 'utf8'))
    for (const { name, line, fields } of asked) {
      const place = `${path}:${line} ${name}`
      if (fields > widest.fields) widest = { fields, place }
      if (fields <= mostFields) continue
      violations++
      console.error(
        `${place} has ${fields} fields; at most ${mostFields} are to be there: take fewer collaborators`,
      )
    }
    for (const { name, line } of slots) {
      slotCount++
      console.error(
        `${path}:${line} "${name}" is filled in later; make what is shared before both, and readonly`,
      )
    }
  }
  console.log(`dependencies: widest ${widest.fields} (${widest.place}), ${slotCount} callback slot(s)`)
  process.exitCode = violations + slotCount === 0 ? 0 : 1
}

if (import.meta.main) await check()
