/** The mistakes that the net has to find. */
import type { PlantedFault } from './planted-fault.ts'

export const plantedFaults: readonly PlantedFault[] = []

/** @throws Error naming the known ones. */
export function plantedFault(name: string): PlantedFault {
  const found = plantedFaults.find((fault) => fault.name === name)
  if (found === undefined)
    throw new Error(
      `no planted fault ${name}; known are ${plantedFaults.map((each) => each.name).join(', ')}`,
    )
  return found
}
