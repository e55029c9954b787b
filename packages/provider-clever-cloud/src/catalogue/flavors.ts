/** The flavors of Clever Cloud that this version knows (clever-cloud.md 5.1, 20). */

/** The node size of a flavor. */
export interface FlavorSize {
  readonly name: string
  readonly cpu: number
  /** As the kernel of the current node image reports it. */
  readonly memoryKi: number
}

/** Smallest first; the order decides ties. */
export const builtInFlavors: readonly FlavorSize[] = [
  { name: '2XS', cpu: 4, memoryKi: 3_715_344 },
  { name: 'XS', cpu: 6, memoryKi: 7_553_664 },
  { name: 'S', cpu: 8, memoryKi: 11_385_832 },
  { name: 'M', cpu: 10, memoryKi: 15_229_256 },
  { name: 'L', cpu: 12, memoryKi: 22_896_304 },
  { name: 'XL', cpu: 16, memoryKi: 30_584_176 },
]

/** Memory in the labels of the Go provider, which has the sizes of an earlier node image. */
export const formerMemoryKi: ReadonlyMap<string, number> = new Map([
  ['2XS', 3_911_884],
  ['XS', 7_937_580],
  ['S', 11_957_148],
  ['M', 15_988_992],
  ['L', 23_983_488],
  ['XL', 31_977_984],
])

/** The same for nodes of every flavor, as Kubernetes quantities. */
export const sharedSize = {
  ephemeralStorage: '40971488Ki',
  allocatableEphemeralStorage: '37759323279',
  pods: '110',
  kubeReservedMemory: '100Mi',
} as const
