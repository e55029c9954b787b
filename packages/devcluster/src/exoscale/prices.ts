/**
 * EUR per hour and running instance, as Exoscale's list prices stood when this table was written.
 * Families and sizes that are missing here have no known price.
 */
import { ownValue } from '@tenon/api'
const pricesPerHour: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  standard: {
    micro: 0.00729,
    tiny: 0.01458,
    small: 0.02333,
    medium: 0.04666,
    large: 0.09333,
    'extra-large': 0.18667,
    huge: 0.37334,
    mega: 0.74667,
    titan: 1.49333,
    jumbo: 2.24,
    colossus: 2.98666,
  },
  cpu: { 'extra-large': 0.23333, huge: 0.46666, mega: 0.93333, titan: 1.86667 },
  memory: { 'extra-large': 0.14, huge: 0.28, mega: 0.56, titan: 1.12 },
  storage: { 'extra-large': 0.14, huge: 0.28, mega: 0.56, titan: 1.12, jumbo: 1.86667 },
  gpu2: { small: 1.375, medium: 2.01389, large: 2.65278, huge: 3.31944 },
  gpu3: { small: 2.13333, medium: 4.26667, large: 8.53333, huge: 17.06667 },
  gpua30: { small: 1.16806, medium: 1.71111, large: 2.25417, huge: 2.82083 },
  gpua5000: { small: 1.34028, medium: 2.47951, large: 4.55694 },
  gpu3080ti: { small: 0.92361, medium: 1.70868, large: 3.14028 },
}

/** EUR per hour of one running instance; undefined when the price is not known. */
export function pricePerHour(family: string, size: string): number | undefined {
  return ownValue(ownValue(pricesPerHour, family), size)
}
