/** Lines of snapshot and recording files (ask.md 4, 6). */
import type { KubeObject, Pod } from '@tenon/api'
import type { NodeDecision } from '@tenon/operator'
import type { SnapshotHead } from '../snapshot/head.ts'
import type { PodLine } from '../snapshot/pod-lines.ts'
import { snapshotVersion } from '../snapshot/snapshot.ts'
import type { TraceRecord } from '../trace/records.ts'
import {
  byName,
  count,
  decimal,
  type Fields,
  foreign,
  type JsonSchema,
  list,
  object,
  objectJson,
  oneOfKind,
  only,
  optional,
  text,
  time,
} from './build.ts'
import { catalogueSchema, originSchema } from './catalogue.ts'
import { published } from './document.ts'
import { obstacleFields, obstacleSchema, stuckSchema } from './explanations.ts'
import { entryLine } from './journal.ts'

const aMoment = decimal('Unix milliseconds')

const objectSchema = {
  type: 'object',
  properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } },
  required: ['apiVersion', 'kind', 'metadata'],
}

const kubernetesObject = foreign<KubeObject>(objectSchema, 'an object of Kubernetes')

/** An object whose fields depend on the release; unknown ones are ignored by the reader. */
const ofRelease = { type: 'object' }

const headFields: Fields<SnapshotHead> = {
  takenAtMs: decimal('Unix milliseconds: the clock of every decision on it'),
  program: text('that wrote it'),
  origin: originSchema,
  cloud: foreign(ofRelease, 'what the provider says of the cloud beside what it sells'),
  settings: foreign(ofRelease, 'of the controller'),
  memory: foreign(ofRelease, 'what the controller remembers'),
}

const decision = object<NodeDecision>({
  ...obstacleFields,
  node: optional(text()),
  nodeClaim: text(),
  nodePool: text(),
  others: optional(list(obstacleSchema)),
  stuck: stuckSchema,
  at: time(),
})

const part = foreign<PodLine['pod']>(
  ofRelease,
  'what several pods have in common; parts are numbered from 0 in their order',
)
const ownPart = foreign<PodLine['pod']>(
  objectSchema,
  'a pod without what its parts say, which belongs beside its own fields',
)
const partFields: Fields<PodLine['parts']> = {
  metadata: optional(count('number of the part')),
  spec: optional(count('number of the part')),
  conditions: optional(list(count('number of the part'), 'those of the status')),
}

const lineOf = (name: string, json: JsonSchema): JsonSchema => objectJson({ [name]: { json } })

export const snapshotSchema: JsonSchema = published(
  'Snapshot',
  'A line of a snapshot: the head, then instance types, objects (pods in parts), decisions and journal entries, then the end.',
  {
    oneOf: [
      objectJson(
        { apiVersion: only('tenon.sh/v1alpha1'), kind: only('Snapshot'), version: only(snapshotVersion) },
        headFields,
      ),
      lineOf('catalogue', catalogueSchema.json),
      lineOf('object', kubernetesObject.json),
      lineOf('part', part.json),
      objectJson({ pod: ownPart, parts: object<PodLine['parts']>(partFields) }),
      lineOf('nodeDecision', decision.json),
      entryLine,
      lineOf('end', objectJson({ lines: count(), sha256: optional(text('of all lines before it')) })),
    ],
  },
)

type Of<Kind extends TraceRecord['kind']> = Extract<TraceRecord, { readonly kind: Kind }>

const pod = foreign<Pod>(objectSchema, 'without name, uid and node')

const records = oneOfKind<TraceRecord>({
  session: object<Of<'session'>>({ kind: only('session'), atMs: aMoment, program: text(), source: text() }),
  shape: object<Of<'shape'>>({ kind: only('shape'), shape: count(), pod }),
  podCame: object<Of<'podCame'>>({
    kind: only('podCame'),
    atMs: aMoment,
    pod: count(),
    shape: count(),
    name: text(),
    id: text('digest of its uid'),
    node: optional(text('where it runs, of pods that were there when the session began')),
  }),
  podMoved: object<Of<'podMoved'>>({ kind: only('podMoved'), atMs: aMoment, pod: count(), id: text() }),
  podEnded: object<Of<'podEnded'>>({ kind: only('podEnded'), atMs: aMoment, pod: count() }),
  nodeCame: object<Of<'nodeCame'>>({
    kind: only('nodeCame'),
    atMs: aMoment,
    node: text(),
    id: text(),
    labels: byName(text()),
    allocatable: byName(text()),
    capacity: byName(text()),
    pricePerHour: optional(decimal('absent when it is not known')),
  }),
  nodeGone: object<Of<'nodeGone'>>({ kind: only('nodeGone'), atMs: aMoment, node: text() }),
  object: object<Of<'object'>>({ kind: only('object'), atMs: aMoment, object: kubernetesObject }),
  objectGone: object<Of<'objectGone'>>({
    kind: only('objectGone'),
    atMs: aMoment,
    apiVersion: text(),
    objectKind: text(),
    namespace: optional(text()),
    name: text(),
  }),
  catalogue: object<Of<'catalogue'>>({
    kind: only('catalogue'),
    atMs: aMoment,
    catalogues: list(catalogueSchema),
  }),
  gap: object<Of<'gap'>>({ kind: only('gap'), atMs: aMoment, fromMs: aMoment, because: text() }),
  alive: object<Of<'alive'>>({ kind: only('alive'), atMs: aMoment }),
})

export const traceSchema: JsonSchema = published(
  'Trace',
  'A record of what tenon record writes. A file begins with the line "tenon-record 1"; blocks follow: length and checksum (CRC-32 with the length as its start), four bytes each, and records as lines of JSON, compressed (raw deflate).',
  records.json,
)
