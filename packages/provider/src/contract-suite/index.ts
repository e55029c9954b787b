/** Tests that every provider passes; a provider's own tests run them with a harness for its cloud. */
import { describe } from 'node:test'
import { examineCreation } from './creation.ts'
import { examineDescription } from './description.ts'
import type { ContractWorld } from './harness.ts'
import { examineInventory } from './inventory.ts'

export type { ContractWorld, Death, Obstacle, ProviderProcess } from './harness.ts'

/** Registers the contract's tests for one provider; each test opens a world of its own. */
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
