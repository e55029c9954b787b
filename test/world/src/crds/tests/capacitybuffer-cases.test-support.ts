/** CapacityBuffer (api.md 6): its two rules, its bounds and its default. */
import { accepts, type CrdCase, refuses } from './crd-case.test-support.ts'
import { aCapacityBuffer } from './manifests.test-support.ts'

const podTemplateRef = { name: 'web' }
const scalableRef = { kind: 'Deployment', name: 'web' }
const templated = (fields: object) => aCapacityBuffer({ podTemplateRef, ...fields })
const counted = (field: string) => (value: unknown) => aCapacityBuffer({ scalableRef, [field]: value })

export const capacityBufferCases: readonly CrdCase[] = [
  ...refuses(
    'BUF-2 BUF-114 API-48 CapacityBuffer podTemplateRef without a size',
    /spec: .*'podTemplateRef' needs 'replicas' or 'limits'/,
    [{}, { percentage: 50 }],
    templated,
  ),
  ...accepts(
    'BUF-2 API-48 CapacityBuffer podTemplateRef with a size',
    [{ replicas: 3 }, { limits: { cpu: '4' } }, { replicas: 0, percentage: 10 }],
    templated,
  ),
  ...refuses(
    'BUF-2 API-48 CapacityBuffer both references',
    /spec: .*'podTemplateRef' and 'scalableRef' exclude each other/,
    [{ scalableRef, replicas: 1 }],
    templated,
  ),
  ...accepts(
    'BUF-2 API-48 CapacityBuffer one reference or none',
    [{}, { scalableRef }, { scalableRef: { ...scalableRef, apiGroup: 'apps' }, percentage: 150 }],
    aCapacityBuffer,
  ),
  ...['replicas', 'percentage'].flatMap((field) => [
    ...refuses(
      `BUF-4 API-49 CapacityBuffer ${field}`,
      /should be greater than or equal to 0/,
      [-1],
      counted(field),
    ),
    ...refuses(`CapacityBuffer ${field}`, /must be of type integer/, ['1', 1.5], counted(field)),
    ...accepts(`BUF-4 API-49 CapacityBuffer ${field}`, [0, 2_147_483_647], counted(field)),
    {
      name: `VER-5 CapacityBuffer ${field} of more than 32 bits`,
      create: counted(field)(3_000_000_000),
      refused: /int32/,
      refusedFrom: 36,
    },
  ]),
  ...refuses(
    'BUF-4 API-49 CapacityBuffer empty names',
    /should be at least 1 chars long/,
    [
      { podTemplateRef: { name: '' }, replicas: 1 },
      { scalableRef: { ...scalableRef, name: '' } },
      { scalableRef: { ...scalableRef, kind: '' } },
    ],
    aCapacityBuffer,
  ),
  ...refuses(
    'CapacityBuffer without names',
    /Required value/,
    [{ podTemplateRef: {}, replicas: 1 }, { scalableRef: { name: 'web' } }],
    aCapacityBuffer,
  ),
  ...refuses('CapacityBuffer', /spec: Required value/, [undefined], (spec) => ({
    ...aCapacityBuffer(),
    spec,
  })),
  ...refuses('CapacityBuffer limits', /limits/, [{ cpu: 'many' }], (limits) => templated({ limits })),
  {
    name: 'BUF-3 API-50 a CapacityBuffer without a strategy gets the default',
    create: aCapacityBuffer(),
    stored: { 'spec.provisioningStrategy': 'buffer.x-k8s.io/active-capacity' },
  },
  {
    name: 'a CapacityBuffer keeps the strategy that it names',
    create: aCapacityBuffer({ provisioningStrategy: 'example.com/other' }),
    stored: { 'spec.provisioningStrategy': 'example.com/other' },
  },
  {
    name: 'the status of a CapacityBuffer is kept',
    create: aCapacityBuffer(),
    change: {
      subresource: 'status',
      manifest: {
        ...aCapacityBuffer(),
        status: { replicas: 3, podTemplateRef, podTemplateGeneration: 2, provisioningStrategy: 'x' },
      },
    },
    stored: { 'status.replicas': 3, 'status.podTemplateGeneration': 2, 'status.podTemplateRef.name': 'web' },
  },
]
