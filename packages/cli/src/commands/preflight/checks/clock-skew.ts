/** The API server's clock against the one here, by the Date of an answer. */
import { type HttpResponse, readText } from '@tenon/runtime'
import type { Check, CheckOutcome } from '../check.ts'

/** More than this is told; the Date has whole seconds, and an answer takes its time. */
const toleratedMs = 5_000
/** Leases, tokens and signatures go wrong beyond. */
const harmfulMs = 60_000

export const clockSkew: Check = {
  name: 'clock',
  run: async ({ transport, clock }, signal) => {
    const sentMs = clock.now()
    const response = await transport.send(
      { method: 'GET', path: '/version', headers: { accept: 'application/json' } },
      signal,
    )
    const arrivedMs = clock.now()
    await readText(response.body)
    return judge(response, sentMs, arrivedMs)
  },
}

function judge({ headers }: HttpResponse, sentMs: number, arrivedMs: number): CheckOutcome {
  const told = Date.parse(headers['date'] ?? '')
  if (Number.isNaN(told))
    return {
      summary: '',
      findings: [
        {
          status: 'warn',
          message: 'answers of the API server have no Date',
          fix: 'compare the clocks of the control plane, of this computer and of the nodes by hand',
        },
      ],
    }
  // The answer was made between the two, in some part of the second that it tells.
  const skewMs = told + 999 < sentMs ? told + 999 - sentMs : Math.max(0, told - arrivedMs)
  if (Math.abs(skewMs) <= toleratedMs)
    return { summary: 'the clocks of the API server and of this computer agree', findings: [] }
  const seconds = Math.round(Math.abs(skewMs) / 1000)
  return {
    summary: '',
    findings: [
      {
        status: Math.abs(skewMs) > harmfulMs ? 'fail' : 'warn',
        message: `the clock of the API server is ${seconds} s ${skewMs < 0 ? 'behind' : 'ahead of'} the one of this computer`,
        fix: 'set the clocks by NTP (chrony or systemd-timesyncd), on the control plane and here',
      },
    ],
  }
}
