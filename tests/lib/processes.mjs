// The host's view of processes and of what Kiln left behind.
import { readdirSync, readFileSync } from 'node:fs'

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return '' // gone meanwhile
  }
}

function alive(pid) {
  return !/^(.*\) [ZX] .*)?$/s.test(read(`/proc/${pid}/stat`))
}

function pids() {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && alive(name))
}

/** Processes (no zombies) of that command name, or with that word in their command line. */
export function processesNamed(word) {
  return pids().filter(
    (pid) => read(`/proc/${pid}/comm`).trim() === word || read(`/proc/${pid}/cmdline`).split('\0').includes(word),
  )
}

/** Processes (no zombies) that run as `uid`. */
export function processesOf(uid) {
  return pids().filter((pid) => Number(read(`/proc/${pid}/status`).match(/^Uid:\t(\d+)/m)?.[1]) === uid)
}

/** User and system time in ticks that the processes have used. */
export function ticksOf(pids) {
  return pids.reduce((sum, pid) => {
    const fields = read(`/proc/${pid}/stat`).replace(/^.*\) /s, '').split(' ')
    return sum + Number(fields[11]) + Number(fields[12])
  }, 0)
}

/** VmRSS of a process in KiB, and how many descriptors it has open. */
export function usageOf(pid) {
  return {
    residentKiB: Number(read(`/proc/${pid}/status`).match(/^VmRSS:\s+(\d+) kB/m)[1]),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  }
}

/** Processes (no zombies) of the environments of a function, by its name in their environment variables. */
export function environmentProcesses(name) {
  return pids().filter((pid) => read(`/proc/${pid}/environ`).split('\0').includes(`AWS_LAMBDA_FUNCTION_NAME=${name}`))
}
