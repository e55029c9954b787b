interface CleverFlavor {
  readonly name: string
  readonly cpu: number
  readonly memoryKi: number
  /** Price per hour relative to a 2XS. */
  readonly price: number
}

/**
 * The flavors of Clever Cloud according to its current image (clever-cloud.md 20), for oracles that use no
 * product code.
 */
export const cleverFlavors: readonly [CleverFlavor, ...CleverFlavor[]] = [
  { name: '2XS', cpu: 4, memoryKi: 3_715_344, price: 1 },
  { name: 'XS', cpu: 6, memoryKi: 7_553_664, price: 1.8527 },
  { name: 'S', cpu: 8, memoryKi: 11_385_832, price: 2.7044 },
  { name: 'M', cpu: 10, memoryKi: 15_229_256, price: 3.5582 },
  { name: 'L', cpu: 12, memoryKi: 22_896_304, price: 5.0873 },
  { name: 'XL', cpu: 16, memoryKi: 30_584_176, price: 6.783 },
]

/** Price per hour of a flavor relative to a 2XS; undefined for an unknown one. */
export function cleverPrice(flavor: string): number | undefined {
  return cleverFlavors.find(({ name }) => name === flavor)?.price
}
