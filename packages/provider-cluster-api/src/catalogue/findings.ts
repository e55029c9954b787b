/** Problems and warnings found while a MachineDeployment is read. */

/** Collects clauses without a full stop. */
export class Findings {
  /** Why the MachineDeployment cannot be used. */
  readonly problems: string[] = []
  /** What may be a mistake of the user. */
  readonly warnings: string[] = []
}
