import { ownValue } from '@tenon/api'

/** The zones of the cloud, in the order of its API. */
export const publishedZones: readonly string[] = [
  'ch-gva-2',
  'ch-dk-2',
  'de-fra-1',
  'de-muc-1',
  'at-vie-1',
  'at-vie-2',
  'bg-sof-1',
  'hr-zag-1',
]

/** An instance type as published by Exoscale. */
export interface PublishedType {
  /** Undefined if it is not published. */
  readonly id: string | undefined
  readonly family: string
  readonly size: string
  /** `family.size` */
  readonly name: string
  readonly cpus: number
  readonly memoryBytes: number
  readonly gpus: number
  /** Whether CPUs, memory and GPUs are published. If not, they are assumptions of the simulated cloud. */
  readonly isSizePublished: boolean
  readonly zones: readonly string[]
  /** Root disk range in GiB, if published. */
  readonly disk: { readonly minGib: number; readonly maxGib: number } | undefined
}

const zonesOfFamily: Readonly<Record<string, readonly string[]>> = {
  gpu2: ['at-vie-1'],
  gpu3: ['de-fra-1'],
  gpua30: ['ch-gva-2'],
  gpua5000: ['at-vie-2'],
  gpu3080ti: ['at-vie-2'],
  gpurtx6000pro: ['ch-dk-2', 'de-fra-1', 'hr-zag-1'],
}

/** Families and types whose sizes are not published. */
const unpublishedSizes: ReadonlySet<string> = new Set([
  'gpua30',
  'gpua5000',
  'gpu3080ti',
  'gpurtx6000pro',
  'cpu.titan48c',
  'cpu.colossus',
])

// name, CPUs, memory in MiB, GPUs, published root disk range in GiB, id if it is published.
const rows = `
standard.micro 1 512 0 10-200 71004023-bb72-4a97-b1e9-bc66dfce9470
standard.tiny 1 1024 0 10-400 b6cd1ff5-3a2f-4e9d-a4d1-8988c1191fe8
standard.small 2 2048 0 10-400 21624abb-764e-4def-81d7-9fc54b5957fb
standard.medium 2 4096 0 10-400 b6e9d1e8-89fc-4db3-aaa4-9b4c5b1d0844
standard.large 4 8192 0 10-400 c6f99499-7f59-4138-9427-a09db13af2bc
standard.extra-large 4 16384 0 10-800 350dc5ea-fe6d-42ba-b6c0-efb8b75617ad
standard.huge 8 32768 0 10-800 a216b0d1-370f-4e21-a0eb-3dfc6302b564
standard.mega 12 65536 0 10-800 c0d3fb5d-6fdb-4a63-9361-3e5cfa8b36d0
standard.titan 16 131072 0 10-1600 74bfaf4e-7d67-4adf-9322-12b9a36e84f7
standard.jumbo 24 230400 0 10-1600 011a5079-845d-467b-a660-8685dad1cb67
standard.colossus 40 327680 0 10-1600 8a52e80d-b1d0-4efb-8059-a931fa33c5a1
cpu.extra-large 8 16384 0 10-800 221d39c3-b2b9-4014-b32b-5d262f684eff
cpu.huge 16 32768 0 10-800 68c91810-55ed-4685-9771-00d9adf7b7c0
cpu.mega 32 65536 0 10-800 c2f204df-29fc-4c20-b5c4-bdb21282cecc
cpu.titan 40 131072 0 10-1600 e1ae0088-27fd-4185-a057-075ea0b0aa02
cpu.titan48c 48 131072 0 - ea24461a-41e8-49f1-a22a-0f00e3507604
cpu.colossus 80 262144 0 - 68dec7c8-7ae8-43b6-ad4a-d508152110fe
memory.extra-large 2 16384 0 10-800 dd6abc94-337f-4732-baff-ed745f8bd4f5
memory.huge 4 32768 0 10-800 efbf55db-01c9-4c73-973f-cecc4d26dcde
memory.mega 8 65536 0 10-800 306eeeae-38e9-4add-897b-4eff0b019a6d
memory.titan 12 131072 0 10-1600 68a4780f-cc91-4df6-a735-d679318289bc
storage.extra-large 4 16384 0 1000-2000
storage.huge 8 32768 0 2000-3000
storage.mega 12 65536 0 3000-5000
storage.titan 16 131072 0 5000-10000
storage.jumbo 24 230400 0 10000-15000
gpu.small 12 57344 1 100-800 07246b95-bbe4-498f-92a3-ce5be4d38342
gpu.medium 16 92160 2 100-1200
gpu.large 24 122880 3 100-1600
gpu.huge 48 230400 4 100-1600 dee65287-12cf-4e36-b635-32dbc9a2e909
gpu2.small 12 57344 1 100-800
gpu2.medium 16 92160 2 100-1200
gpu2.large 24 122880 3 100-1600
gpu2.huge 48 230400 4 100-1600
gpu3.small 12 57344 1 100-800
gpu3.medium 24 122880 2 100-1200
gpu3.large 48 229376 4 100-1600
gpu3.huge 96 458752 8 100-1600
gpua30.small 12 57344 1 -
gpua30.medium 16 92160 2 -
gpua30.large 24 122880 3 -
gpua30.huge 48 230400 4 -
gpua5000.small 12 57344 1 -
gpua5000.medium 24 114688 2 -
gpua5000.large 48 229376 4 -
gpu3080ti.small 12 57344 1 -
gpu3080ti.medium 24 114688 2 -
gpu3080ti.large 48 229376 4 -
gpurtx6000pro.small 16 98304 1 -
gpurtx6000pro.medium 32 196608 2 -
gpurtx6000pro.large 64 393216 4 -
gpurtx6000pro.huge 128 786432 8 -
`

/** Every instance type of the cloud, in any zone. */
export const publishedTypes: readonly PublishedType[] = rows.trim().split('\n').map(instanceTypeOf)

function instanceTypeOf(row: string): PublishedType {
  const [name = '', cpus, memoryMib, gpus, disk = '-', id] = row.split(' ')
  const [family = '', size = ''] = name.split('.')
  const [minGib, maxGib] = disk.split('-')
  return {
    id,
    family,
    size,
    name,
    cpus: Number(cpus),
    memoryBytes: Number(memoryMib) * 2 ** 20,
    gpus: Number(gpus),
    isSizePublished: !unpublishedSizes.has(family) && !unpublishedSizes.has(name),
    zones: ownValue(zonesOfFamily, family) ?? publishedZones,
    disk: minGib === '' ? undefined : { minGib: Number(minGib), maxGib: Number(maxGib) },
  }
}
