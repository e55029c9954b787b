/** Catalogues in files, and their sources (ask.md 4, 6). */
import type { InstanceType, Offering, Requirement, Resources, Taint, Unavailability } from '@tenon/api'
import type { SnapshotCatalogue, SnapshotOrigin } from '../snapshot/snapshot.ts'
import {
  byName,
  count,
  decimal,
  list,
  object,
  oneOfKind,
  only,
  optional,
  type Schema,
  text,
  time,
  truth,
  words,
} from './build.ts'
import { attributeBindings, sliceTemplates } from './devices.ts'

const amounts: Schema<Resources> = byName(
  decimal(),
  'thousandths of a core for cpu, bytes for memory and storage, numbers of everything else',
)

const requirement = object<Requirement>({
  key: text(),
  operator: words<Requirement['operator']>({
    In: '',
    NotIn: '',
    Exists: '',
    DoesNotExist: '',
    Gt: '',
    Lt: '',
    Gte: '',
    Lte: '',
  }),
  values: optional(list(text())),
  minValues: optional(count()),
})

const offering = object<Offering>({
  requirements: list(requirement),
  pricePerHour: optional(decimal('absent when it is not known')),
  surchargePerHour: optional(decimal('the part of the price that the NodePool adds for each node')),
  available: truth(),
  unavailability: optional(
    object<Unavailability>({ because: text(), untilMs: optional(decimal('Unix milliseconds')) }),
  ),
  reservationCapacity: optional(count()),
  capacityOverride: optional(amounts),
  overheadOverride: optional(amounts),
})

const instanceType = object<InstanceType>({
  name: text(),
  requirements: list(requirement),
  offerings: list(offering),
  capacity: amounts,
  overhead: object<InstanceType['overhead']>({
    kubeReserved: amounts,
    systemReserved: amounts,
    evictionThreshold: amounts,
  }),
  resourceSliceTemplates: optional(sliceTemplates),
  attributeBindings: optional(attributeBindings),
  overlaid: optional(
    object<NonNullable<InstanceType['overlaid']>>({
      price: optional(truth()),
      capacity: optional(truth()),
    }),
  ),
})

export const catalogueSchema: Schema<SnapshotCatalogue> = object<SnapshotCatalogue>({
  nodePools: list(text()),
  instanceTypes: optional(list(instanceType, 'absent when the provider could not tell')),
  problem: optional(text()),
  kubeletVersion: optional(text('of new nodes; absent if unknown')),
  defaults: optional(
    object<NonNullable<SnapshotCatalogue['defaults']>>({
      labels: byName(text()),
      taints: list(
        object<Taint>({
          key: text(),
          value: optional(text()),
          effect: words<Taint['effect']>({ NoSchedule: '', PreferNoSchedule: '', NoExecute: '' }),
          timeAdded: optional(time()),
        }),
      ),
    }),
  ),
})

export const originSchema: Schema<SnapshotOrigin> = oneOfKind<SnapshotOrigin>({
  controller: object<Extract<SnapshotOrigin, { kind: 'controller' }>>({
    kind: only('controller'),
    identity: text('of the controller'),
    isLeading: truth(),
  }),
  objects: object<Extract<SnapshotOrigin, { kind: 'objects' }>>({
    kind: only('objects'),
    server: text('address of the API server'),
    catalogue: text('where the instance types come from'),
  }),
})
