/** Holds an API server to the table of expressions: what it refuses in a CRD, and what it finds in objects. */
import assert from 'node:assert/strict'
import { patterns, rules } from './expressions.test-support.ts'
import type { SendRequest, ServerAnswer } from './crd-case.test-support.ts'

const crdsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const group = 'expressions.example.com'
const fieldsPerKind = 50
/** How often a server is asked whether it serves a new kind; it answers when it knows more. */
const establishedTries = 400

type Field = Readonly<Record<string, unknown>>

function aCrd(plural: string, fields: readonly Field[]): object {
  const kind = `${plural.charAt(0).toUpperCase()}${plural.slice(1)}`
  const properties = Object.fromEntries(fields.map((field, index) => [`f${index}`, field]))
  const openAPIV3Schema = {
    type: 'object',
    properties: { spec: { type: 'object', properties } },
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural, kind, singular: plural, listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  }
}

const ruleField = (rule: string): Field => ({
  type: 'string',
  maxLength: 10,
  'x-kubernetes-validations': [{ rule: `self == '' || (${rule})` }],
})
const patternField = (pattern: string): Field => ({ type: 'string', pattern })

/** Fails unless the server refuses every rule and pattern that it must refuse, naming the field. */
export async function refusesExpressions(send: SendRequest): Promise<void> {
  const wrong: string[] = []
  for (const rule of rules.invalid) {
    const { status, body } = await send('POST', `${crdsPath}?dryRun=All`, aCrd('refused', [ruleField(rule)]))
    if (status !== 422 || !String(body.message).includes('.rule')) wrong.push(`${rule}: ${status}`)
  }
  for (const [pattern] of patterns.invalid) {
    const crd = aCrd('refused', [patternField(pattern)])
    const { status, body } = await send('POST', `${crdsPath}?dryRun=All`, crd)
    const isTold = String(body.message).includes(
      "must be a valid regular expression, but isn't: error parsing",
    )
    if (status !== 422 || !isTold) wrong.push(`${pattern}: ${status} ${body.message}`)
  }
  assert.deepEqual(wrong, [])
}

interface Expected {
  readonly name: string
  readonly field: Field
  readonly value: string
  /** What the server says of the field; absent: nothing. */
  readonly says?: RegExp
}

function expectations(): readonly Expected[] {
  const ofRule = (rule: string, says?: RegExp): Expected => ({
    name: rule,
    field: ruleField(rule),
    value: 'x',
    ...(says && { says }),
  })
  return [
    ...rules.true.map((rule) => ofRule(rule)),
    ...rules.false.map((rule) => ofRule(rule, /failed rule/)),
    ...rules.error.map((rule) => ofRule(rule, /evaluating rule|call arguments did not match/)),
    ...patterns.match.map(([pattern, text]) => ({
      name: `${pattern} on ${JSON.stringify(text)}`,
      field: patternField(pattern),
      value: text,
    })),
    ...patterns.noMatch.map(([pattern, text]) => ({
      name: `${pattern} on ${JSON.stringify(text)}`,
      field: patternField(pattern),
      value: text,
      says: /should match/,
    })),
  ]
}

/** The first minor version with all functions of the table; a server takes new ones a version after it knows them. */
const newestFunctions = 35

/**
 * Fails unless the server decides every other rule and pattern as the table says.
 * @param minor version of Kubernetes; an older one may lack functions, whose rules are left out.
 */
export async function evaluatesExpressions(send: SendRequest, minor = newestFunctions): Promise<void> {
  const all = expectations()
  const wrong: string[] = []
  for (let start = 0; start < all.length; start += fieldsPerKind) {
    wrong.push(...(await wrongAnswers(send, minor, `kind${start}`, all.slice(start, start + fieldsPerKind))))
  }
  assert.deepEqual(wrong, [])
}

async function wrongAnswers(
  send: SendRequest,
  minor: number,
  plural: string,
  expected: readonly Expected[],
): Promise<string[]> {
  const crd = aCrd(
    plural,
    expected.map(({ field }) => field),
  )
  const created = await send('POST', crdsPath, crd)
  const leftOut = new Set([
    // The embedded API server estimates no cost, so only it decides those.
    ...refusedFields(created, /estimated rule cost exceeds budget/),
    ...(minor < newestFunctions ? refusedFields(created, /undeclared reference to/) : []),
  ])
  if (leftOut.size > 0) {
    return wrongAnswers(
      send,
      minor,
      plural,
      expected.filter((_, index) => !leftOut.has(index)),
    )
  }
  assert.equal(created.status, 201, created.body.message)
  try {
    const { kind } = created.body.spec.names
    const spec = Object.fromEntries(expected.map(({ value }, index) => [`f${index}`, value]))
    const object = { apiVersion: `${group}/v1`, kind, metadata: { name: 'one' }, spec }
    const answer = await whenServed(() => send('POST', `/apis/${group}/v1/${plural}?dryRun=All`, object))
    const causes = (answer.body.details?.causes ?? []) as readonly { field: string; message: string }[]
    return expected.flatMap(({ name, says }, index) => {
      const said = causes.filter(({ field }) => field === `spec.f${index}`).map(({ message }) => message)
      const isRight = says === undefined ? said.length === 0 : said.some((message) => says.test(message))
      return isRight ? [] : [`${name}: ${said.join('; ') || 'accepted'}`]
    })
  } finally {
    await send('DELETE', `${crdsPath}/${plural}.${group}`)
  }
}

/** The fields whose rules a server refuses for a reason. */
function refusedFields({ body }: ServerAnswer, reason: RegExp): ReadonlySet<number> {
  const causes = (body.details?.causes ?? []) as readonly { field: string; message: string }[]
  const refused = causes.filter(({ message }) => reason.test(message))
  return new Set(
    refused.flatMap(({ field }) => {
      const index = /properties\[f(\d+)\]/.exec(field)?.[1]
      return index === undefined ? [] : [Number(index)]
    }),
  )
}

async function whenServed(ask: () => Promise<ServerAnswer>): Promise<ServerAnswer> {
  for (let tries = 1; ; tries++) {
    const answer = await ask()
    if (answer.status !== 404 || tries === establishedTries) return answer
  }
}
