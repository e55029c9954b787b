/** What is noticed while a MachineDeployment is read. */

/** Collects clauses without a full stop. */
export class Findings {
  /** What keeps the MachineDeployment from being used. */
  readonly problems: string[] = []
  /** What its user may have meant otherwise. */
  readonly warnings: string[] = []
}
