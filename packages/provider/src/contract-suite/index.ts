/** Tests for every provider, which a provider's own tests run with a harness for its cloud. */
import { describe } from 'node:test'
import { examineCreation } from './creation.ts'
import { examineDescription } from './description.ts'
import type { ContractWorld } from './harness.ts'
import { examineInventory } from './inventory.ts'

export { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
export type { ContractWorld, Death, Obstacle, ProviderProcess } from './harness.ts'
export { MemoryKube } from './memory-kube.ts'
export { type MortalProcess, mortalProcess } from './mortal-process.ts'

/** Registers the contract's tests for one provider; each test opens its own world. */
export function examineProvider(name: string, open: () => Promise<ContractWorld>): void {
  describe(`${name} keeps the provider contract: launching`, () => {
    examineCreation(open)
  })
  describe(`${name} keeps the provider contract: reading and deleting`, () => {
    examineInventory(open)
  })
  describe(`${name} keeps the provider contract: what it says`, () => {
    examineDescription(open)
  })
}
