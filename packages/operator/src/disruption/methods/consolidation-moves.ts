/** Moves of consolidation as commands. */
import type { ConsolidationResult } from '@tenon/engine'
import type { KeptPlans } from '../../placement/kept-plans.ts'
import type { CommandJournal } from '../commands/command-journal.ts'
import type { Command } from '../commands/command.ts'
import type { PlannedReplacements } from '../commands/planned-replacement.ts'
import { destinationsOf, type RemovalGround } from '../simulation.ts'

/** What this file works with. */
interface Dependencies {
  readonly replacements: PlannedReplacements
  readonly plans: KeptPlans
  readonly commandJournal: CommandJournal
}

type Move = ConsolidationResult['moves'][number]

export class ConsolidationMoves {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  commandFor(
    move: Move,
    ground: RemovalGround,
    {
      candidates,
      reason,
      type,
      isWhole = false,
    }: Pick<Command, 'candidates' | 'isWhole' | 'reason' | 'type'>,
  ): Command {
    const { replacements } = this.#deps
    return {
      reason,
      type,
      candidates,
      isWhole,
      replacements: move.claims.map((claim) =>
        replacements.of(claim, reason, move.waves === undefined ? [] : claim.pods),
      ),
      destinations: destinationsOf(ground, move.placements),
      savings: move.savings,
      ...(move.waves && { waves: move.waves }),
    }
  }

  /** The move does not hold any more. */
  rejected(nodes: Pick<Command, 'candidates' | 'reason'>, because: string): void {
    this.#deps.commandJournal.refused(nodes, because)
  }

  /** The move has begun. */
  begun({ placements, waves }: Move, { input }: RemovalGround): void {
    if (waves !== undefined) this.#deps.plans.keepPlacements(placements, input.stateNodes)
  }
}
