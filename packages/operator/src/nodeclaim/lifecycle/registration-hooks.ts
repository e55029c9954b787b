/** Hooks with which a provider holds registration back (lifecycle.md 3.3). */
import type { NodeClaim } from '@tenon/api'
import type { RegistrationHook, RegistrationVerdict } from '@tenon/provider'

export interface HookOutcome {
  /** Names of the hooks that have not passed, in order of registration. */
  readonly pending: readonly string[]
  /** Labels that the hooks that passed add to the claim. */
  readonly labels: Readonly<Record<string, string>>
  /** The shortest delay any of them asked for. */
  readonly retryAfterMs: number | undefined
  /** Of the hooks that failed; each error names its hook. */
  readonly error: Error | undefined
}

/** Asks all hooks at the same time. Never rejects. */
export async function askHooks(
  hooks: readonly RegistrationHook[],
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<HookOutcome> {
  const answers = await Promise.all(hooks.map((hook) => ask(hook, claim, signal)))
  const pending: string[] = []
  const delays: number[] = []
  const errors: Error[] = []
  const labels: Record<string, string> = {}
  for (const { name, answer } of answers) {
    if (!(answer instanceof Error) && answer.kind === 'passed') {
      Object.assign(labels, answer.labels)
      continue
    }
    pending.push(name)
    if (answer instanceof Error) errors.push(answer)
    else if ((answer.retryAfterMs ?? 0) > 0) delays.push(answer.retryAfterMs as number)
  }
  return {
    pending,
    labels,
    retryAfterMs: delays.length === 0 ? undefined : Math.min(...delays),
    error: errors.length > 1 ? new AggregateError(errors, messages(errors)) : errors[0],
  }
}

async function ask(
  hook: RegistrationHook,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<{ readonly name: string; readonly answer: RegistrationVerdict | Error }> {
  const { name } = hook
  try {
    return { name, answer: await hook.check(claim, signal) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { name, answer: new Error(`registration hook ${name}: ${message}`, { cause: error }) }
  }
}

const messages = (errors: readonly Error[]) => errors.map(({ message }) => message).join('; ')
