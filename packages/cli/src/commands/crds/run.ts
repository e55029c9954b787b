/** `tenon crds diff` and `tenon crds apply`: compares and applies the definitions of this release. */
import { KubeConfigError, type LoadedKubeConfig, loadKubeConfig } from '@tenon/kube'
import { SystemClock } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { loadProviders } from '../../load-provider.ts'
import { allCrds } from '../../crds.ts'
import { type CrdChange, CrdCluster } from './changes.ts'

/** Exit code for errors, as in `diff` and `kubectl diff`. */
const trouble = 2

export interface CrdsClusterFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly provider?: string
}

export interface CrdsApplyFlags extends CrdsClusterFlags {
  readonly forceConflicts?: true
  readonly dryRun?: true
}

/**
 * Prints what `tenon crds apply` would change.
 * @returns 0 if nothing, else 1.
 * @throws CliError with exit code 2 if the cluster cannot be reached.
 */
export async function runCrdsDiff(io: Io, flags: CrdsClusterFlags): Promise<0 | 1> {
  let differs = false
  await onCluster(io, flags, async (cluster) => {
    for (const crd of await definitions(io, flags)) {
      const change = await cluster.difference(crd, false)
      if (change.kind === 'left') io.out(leftText(change))
      if (change.kind === 'unchanged' || change.kind === 'left') continue
      differs = true
      io.out(diffText(change))
    }
  })
  return differs ? 1 : 0
}

/**
 * Applies every definition, prints the changes, and waits until all kinds are served.
 * @throws CliError naming a definition that was rejected; those before it are applied.
 */
export async function runCrdsApply(io: Io, flags: CrdsApplyFlags): Promise<void> {
  await onCluster(io, flags, async (cluster) => {
    const isDryRun = flags.dryRun === true
    const isForced = flags.forceConflicts === true
    for (const crd of await definitions(io, flags)) {
      const change = isDryRun ? await cluster.difference(crd, isForced) : await cluster.apply(crd, isForced)
      if (change.kind === 'left') {
        io.out(leftText(change))
        continue
      }
      if (change.kind === 'configured') io.out(diffText(change))
      io.out(`customresourcedefinition/${change.name} ${change.kind}${isDryRun ? ' (dry run)' : ''}\n`)
      if (!isDryRun) await cluster.established(change.name, new SystemClock(), io.interrupted)
    }
  })
}

async function definitions({ cwd }: Io, { provider = '' }: CrdsClusterFlags): Promise<readonly object[]> {
  return await allCrds((await loadProviders(provider, cwd)).all)
}

function leftText({ name, note = '' }: CrdChange): string {
  return `customresourcedefinition/${name} left as it is: ${note}\n`
}

function diffText({ name, kind, hunks }: CrdChange): string {
  if (kind === 'created') return `Only in this release: customresourcedefinition/${name}\n`
  return `--- cluster/${name}\n+++ tenon/${name}\n${hunks}`
}

async function onCluster(
  io: Io,
  flags: CrdsClusterFlags,
  work: (cluster: CrdCluster) => Promise<void>,
): Promise<void> {
  let config: LoadedKubeConfig | undefined
  try {
    config = loadKubeConfig({ env: io.env, ...flags })
    await work(new CrdCluster(config.transport))
  } catch (cause) {
    if (cause instanceof KubeConfigError) throw new CliError(cause.message, { cause, exitCode: trouble })
    if (cause instanceof CliError) throw new CliError(cause.message, { cause, exitCode: trouble })
    const server = config?.server ?? 'the API server'
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(`${server}: ${reason}`, { cause, exitCode: trouble })
  } finally {
    config?.close()
  }
}
