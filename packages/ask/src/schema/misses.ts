/** Changes that would let a pod run (ask.md 2). */
import type { Change, ChangeTarget } from '../misses/change.ts'
import type { NearestMiss } from '../misses/find.ts'
import {
  count,
  decimal,
  foreign,
  list,
  object,
  oneOfKind,
  only,
  optional,
  type Schema,
  text,
  words,
} from './build.ts'

type Operation = Change['operations'][number]
type Place = NearestMiss['place']

const operation: Schema<Operation> = foreign<Operation>(
  {
    type: 'object',
    properties: {
      op: { enum: ['add', 'remove', 'replace', 'move', 'copy', 'test'] },
      path: { type: 'string' },
      from: { type: 'string' },
      value: {},
    },
    required: ['op', 'path'],
    additionalProperties: false,
  },
  'of a JSON Patch (RFC 6902)',
)

const change = object<Change>({
  kind: words<Change['kind']>({
    addToleration: '',
    dropNodeSelector: '',
    dropNodeAffinity: '',
    widenNodeAffinity: '',
    dropPodAffinity: '',
    dropPodAntiAffinity: '',
    lowerRequest: '',
    relaxSpread: '',
    dropPreference: '',
    raiseLimit: '',
    labelPool: '',
    dropPoolRequirement: '',
    widenPoolRequirement: '',
    readyPool: '',
    dropDeviceSelector: '',
    dropDeviceConstraint: '',
    lowerDeviceCount: '',
    lowerDeviceCapacity: '',
    addDeviceToleration: '',
    lowerMinCount: '',
    dropGroupTopology: '',
  }),
  target: oneOfKind<ChangeTarget>({
    pod: object<Extract<ChangeTarget, { kind: 'pod' }>>({ kind: only('pod') }),
    nodePool: object<Extract<ChangeTarget, { kind: 'nodePool' }>>({ kind: only('nodePool'), name: text() }),
    resourceClaim: object<Extract<ChangeTarget, { kind: 'resourceClaim' }>>({
      kind: only('resourceClaim'),
      namespace: text(),
      name: text(),
    }),
    resourceClaimTemplate: object<Extract<ChangeTarget, { kind: 'resourceClaimTemplate' }>>({
      kind: only('resourceClaimTemplate'),
      namespace: text(),
      name: text(),
    }),
    podGroup: object<Extract<ChangeTarget, { kind: 'podGroup' }>>({
      kind: only('podGroup'),
      id: text('podgroups.GROUP/NAMESPACE/NAME'),
    }),
  }),
  field: text('path of the field in the object'),
  words: text('what to do'),
  operations: list(
    operation,
    'of the object, of which a ResourceClaim has to be made again with it; empty for readyPool, which no patch achieves',
  ),
})

export const missSchema: Schema<NearestMiss> = object<NearestMiss>({
  change,
  running: count('pods of the workload that get a place'),
  waiting: count('of so many that wait'),
  place: oneOfKind<Place>({
    node: object<Extract<Place, { kind: 'node' }>>({ kind: only('node'), name: text() }),
    claim: object<Extract<Place, { kind: 'claim' }>>({
      kind: only('claim'),
      nodePool: text(),
      instanceType: text(),
    }),
  }),
  pricePerHour: optional(decimal('of all new nodes, beyond those that are launched anyway')),
})
