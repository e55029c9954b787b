/** A case an API server must decide the way Tenon's CRDs say, and the way to run it on any API server. */
import assert from 'node:assert/strict'

/** An object as a user writes it; fields set to undefined are omitted. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly [field: string]: unknown
}

/** What is done with an object after it was created. */
interface Change {
  readonly subresource?: 'status'
  /** The whole new object, but for its name. */
  readonly manifest: Manifest
}

export interface CrdCase {
  /** Begins with the scenario it holds, where there is one. */
  readonly name: string
  readonly create: Manifest
  /** Done after the creation, which must then succeed; the verdict is on this. */
  readonly change?: Change
  /** What the refusal says; without it the object must be accepted. */
  readonly refused?: RegExp
  /** The minor version of Kubernetes that began to refuse it; absent: all do. */
  readonly refusedFrom?: number
  /** Values that the stored object must have, by their paths. */
  readonly stored?: Readonly<Record<string, unknown>>
}

export interface ServerAnswer {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- cases look at whatever the server said
  readonly body: any
}

/** One request to an API server as its administrator. */
export type SendRequest = (method: string, path: string, body?: object) => Promise<ServerAnswer>

const plurals: Readonly<Record<string, string>> = {
  NodePool: 'nodepools',
  NodeClaim: 'nodeclaims',
  NodeOverlay: 'nodeoverlays',
  CapacityBuffer: 'capacitybuffers',
  CapacityQuota: 'capacityquotas',
  ProvisioningRequest: 'provisioningrequests',
  CleverNodeClass: 'clevernodeclasses',
  ClusterAPINodeClass: 'clusterapinodeclasses',
  ExoscaleNodeClass: 'exoscalenodeclasses',
  KWOKNodeClass: 'kwoknodeclasses',
}

/** What kubectl asks of the server with every write. */
const strict = '?fieldValidation=Strict'

/**
 * Fails unless the API server decides the case as it must; deletes what it made.
 * @param id tells its object from those of other cases, where several are held at the same time.
 * @param minor version of Kubernetes; by default one that refuses all that any version does.
 */
export async function holdCase(
  send: SendRequest,
  given: CrdCase,
  id: number,
  minor = Number.POSITIVE_INFINITY,
): Promise<void> {
  const name = `${nameOf(given.name)}-${id}`
  const { namespace } = given.create.metadata
  const within = namespace === undefined ? '' : `/namespaces/${namespace}`
  const collection = `/apis/${given.create.apiVersion}${within}/${plurals[given.create.kind]}`
  const path = `${collection}/${name}`
  const named = (manifest: Manifest) => ({ ...manifest, metadata: { ...manifest.metadata, name } })
  try {
    let answer = await send('POST', `${collection}${strict}`, named(given.create))
    if (given.change !== undefined) {
      assert.equal(answer.status, 201, `not created: ${answer.body.message}`)
      const { subresource, manifest } = given.change
      const target = subresource === undefined ? path : `${path}/${subresource}`
      const whole = named(manifest)
      const { resourceVersion } = answer.body.metadata
      const metadata = { ...whole.metadata, resourceVersion }
      answer = await send('PUT', `${target}${strict}`, { ...whole, metadata })
    }
    if (given.refused !== undefined && minor >= (given.refusedFrom ?? 0)) assertRefused(answer, given.refused)
    else await assertAccepted(send, path, answer, given.stored ?? {})
  } finally {
    await send('DELETE', path)
  }
}

function assertRefused(answer: ServerAnswer, pattern: RegExp): void {
  assert.ok(answer.status >= 400, 'accepted, but must be refused')
  assert.match(answer.body.message, pattern)
}

async function assertAccepted(
  send: SendRequest,
  path: string,
  answer: ServerAnswer,
  expected: Readonly<Record<string, unknown>>,
): Promise<void> {
  assert.ok(answer.status === 200 || answer.status === 201, `refused: ${answer.body.message}`)
  const { body } = await send('GET', path)
  const found = Object.fromEntries(Object.keys(expected).map((key) => [key, valueAt(body, key)]))
  assert.deepEqual(found, expected)
}

function valueAt(object: unknown, path: string): unknown {
  return path.split('.').reduce((value, key) => (value as Record<string, unknown> | undefined)?.[key], object)
}

/** An object's name that tells which case made it. */
function nameOf(caseName: string): string {
  return caseName
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
    .replaceAll(/^-+|-+$/g, '')
}

/** One accepted case for each value. */
export function accepts<T>(name: string, values: readonly T[], build: (value: T) => Manifest): CrdCase[] {
  return values.map((value) => ({ name: `${name}: ${shown(value)}`, create: build(value) }))
}

/** One refused case for each value. */
export function refuses<T>(
  name: string,
  refused: RegExp,
  values: readonly T[],
  build: (value: T) => Manifest,
): CrdCase[] {
  return values.map((value) => ({ name: `${name} refused: ${shown(value)}`, create: build(value), refused }))
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent'
  return text.length > 60 ? `${text.slice(0, 40)}… (${text.length} characters)` : text
}

/** `count` texts: a prefix and a number each. */
export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`)
}

/** Objects as kubectl reads several at once; JSON is YAML. */
export function manifestStream(objects: readonly object[]): string {
  return objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('')
}
