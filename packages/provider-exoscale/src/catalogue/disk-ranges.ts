/** Published root disk sizes. An instance with another disk size is refused or unusable. */
import { ownValue } from '@tenon/api'

interface DiskRange {
  /** GiB. */
  readonly min: number
  readonly max: number
}

const maximumBySize: Readonly<Record<string, number>> = {
  micro: 200,
  tiny: 400,
  small: 400,
  medium: 400,
  large: 400,
  'extra-large': 800,
  huge: 800,
  mega: 800,
  titan: 1600,
  jumbo: 1600,
  colossus: 1600,
}

const storage: Readonly<Record<string, DiskRange>> = {
  'extra-large': { min: 1000, max: 2000 },
  huge: { min: 2000, max: 3000 },
  mega: { min: 3000, max: 5000 },
  titan: { min: 5000, max: 10_000 },
  jumbo: { min: 10_000, max: 15_000 },
}

const gpuMaximum: Readonly<Record<string, number>> = { small: 800, medium: 1200, large: 1600, huge: 1600 }
const generalFamilies = new Set(['standard', 'cpu', 'memory'])
const measuredGpuFamilies = new Set(['gpu', 'gpu2', 'gpu3'])

/** The known range; undefined if any size may do. */
function diskRangeOf(family: string, size: string): DiskRange | undefined {
  if (family === 'storage') return ownValue(storage, size)
  if (measuredGpuFamilies.has(family)) {
    const max = ownValue(gpuMaximum, size)
    return max === undefined ? undefined : { min: 100, max }
  }
  const max = generalFamilies.has(family) ? ownValue(maximumBySize, size) : undefined
  return max === undefined ? undefined : { min: 10, max }
}

/** Whether a type can have a root disk of `diskSizeGib`, as far as known. */
export function admitsDisk(family: string, size: string, diskSizeGib: number): boolean {
  const range = diskRangeOf(family, size)
  return range === undefined || (diskSizeGib >= range.min && diskSizeGib <= range.max)
}
