interface CleverFlavor {
  readonly name: string
  readonly cpu: number
  readonly memoryKi: number
  /** Of an hour, in hours of a 2XS. */
  readonly price: number
}

/** The flavors of Clever Cloud as its current image shows them (clever-cloud.md 20), for judges that know no product. */
export const cleverFlavors: readonly [CleverFlavor, ...CleverFlavor[]] = [
  { name: '2XS', cpu: 4, memoryKi: 3_715_344, price: 1 },
  { name: 'XS', cpu: 6, memoryKi: 7_553_664, price: 1.8527 },
  { name: 'S', cpu: 8, memoryKi: 11_385_832, price: 2.7044 },
  { name: 'M', cpu: 10, memoryKi: 15_229_256, price: 3.5582 },
  { name: 'L', cpu: 12, memoryKi: 22_896_304, price: 5.0873 },
  { name: 'XL', cpu: 16, memoryKi: 30_584_176, price: 6.783 },
]

/** Price of one hour of a flavor, in hours of a 2XS; undefined for an unknown one. */
export function cleverPrice(flavor: string): number | undefined {
  return cleverFlavors.find(({ name }) => name === flavor)?.price
}
