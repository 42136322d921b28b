-- A database as it is after years: a hundred thousand sessions, {each} executions in each of them.
--
-- In words that all three databases share, but for bytes; MySQL needs PIPES_AS_CONCAT for them. One of a hundred
-- sessions lives, and an execution in each of those. Statements end where a line ends in a semicolon.

CREATE TABLE digits (i bigint PRIMARY KEY);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE numbers (i bigint PRIMARY KEY);
INSERT INTO numbers
    SELECT a.i + 10 * b.i + 100 * c.i + 1000 * d.i + 10000 * e.i
    FROM digits a, digits b, digits c, digits d, digits e
    ORDER BY 1;

INSERT INTO templates
    (id, version, name, runtime, is_active, cpu_thousandths, memory_bytes, disk_bytes,
     max_processes, created_at, updated_at, image, base_image, packages, security_context)
    SELECT 'template-' || i, 1, 'Template', 'local', i % 10 > 0, 1000, 1073741824, 1073741824, 64,
        1700000000000000 + i * 1000000, 1700000000000000, 'none', NULL, '[]', '{}'
    FROM numbers WHERE i < 1000 ORDER BY i;

INSERT INTO sessions
    (id, version, template_id, live_template_id, status, is_over, mode, agent_id, runtime, node_id,
     cpu_thousandths, memory_bytes, disk_bytes, max_processes, timeout_seconds, created_at,
     started_at, updated_at, last_activity_at, expires_at, terminated_at, container_id,
     executor_url, workspace_path, limits_enforced, walls, env_vars, network, error,
     workspace_removed_at, ended_at, unclean_since, files_due_since)
    SELECT 'sess_' || (1000000000000000 + i), 3, 'template-' || (i % 20),
        CASE WHEN i % 100 < 1 THEN 'template-' || (i % 20) END,
        CASE WHEN i % 100 < 1 THEN 'running' WHEN i % 4 = 1 THEN 'failed' ELSE 'terminated' END,
        i % 100 >= 1, CASE WHEN i % 2 = 0 THEN 'persistent' ELSE 'ephemeral' END,
        CASE WHEN i % 2 = 0 THEN 'agent-' || (i % 10) END, 'local', 'node-' || (i % 10),
        1000, 1073741824, 1073741824, 64, 300, 1700000000000000 + i * 1000000,
        1700000001000000 + i * 1000000, 1700000002000000 + i * 1000000,
        1700000002000000 + i * 1000000, 1700000300000000 + i * 1000000,
        CASE WHEN i % 100 >= 1 THEN 1700000003000000 + i * 1000000 END, 'c', 'http://127.0.0.1:1',
        '/srv/workspaces/w',
        '{"cpu":true,"memory":true,"disk":false,"max_processes":true}',
        '{"between_sessions":"namespaces","executor":"","between_executions":"","network":""}',
        '{"GREETING":"hello"}', '{"enabled":false,"allow":[]}', NULL,
        NULL, CASE WHEN i % 100 >= 1 THEN 1700000003000000 + i * 1000000 END,
        CASE WHEN i % 100 >= 1 THEN 1700000003000000 + i * 1000000 END,
        CASE WHEN i % 100 = 1 THEN 1700000003000000 + i * 1000000 END
    FROM numbers ORDER BY i;

INSERT INTO executions
    (id, version, session_id, status, is_over, language, timeout_seconds, retry, retry_count,
     parent_execution_id, created_at, started_at, completed_at, crashed_at, timeout_at,
     last_heartbeat_at, heard_at, error, progress, code, event)
    SELECT 'exec_20231114_' || (10000000 + n.i * 10 + d.i), 3, 'sess_' || (1000000000000000 + n.i),
        CASE WHEN n.i % 100 + d.i < 1 THEN 'running' WHEN d.i % 4 = 1 THEN 'failed'
            ELSE 'completed' END,
        n.i % 100 + d.i >= 1, 'python', 30, n.i < 0, 0, NULL,
        1700000000000000 + n.i * 1000000 + d.i, 1700000000000000 + n.i * 1000000 + d.i,
        CASE WHEN n.i % 100 + d.i >= 1 THEN 1700000000000000 + n.i * 1000000 + d.i END,
        NULL, NULL, NULL, 1700000000000000 + n.i * 1000000 + d.i, NULL, NULL,
        'print(sum(range(10)))', '{"name":"somebody"}'
    FROM numbers n, digits d WHERE d.i < {each} ORDER BY n.i, d.i;

INSERT INTO results
    (execution_id, digest, stdout_truncated, stderr_truncated, exit_code, execution_time,
     duration_ms, cpu_time_ms, peak_memory_mb, io_read_bytes, io_write_bytes, return_value,
     stdout, stderr)
    SELECT 'exec_20231114_' || (10000001 + i * 10), 'digest', i < 0, i < 0, 0, 0.1, 100.0, 50.0,
        20.0, 0, 0, NULL, CAST('45' AS {bytes}), CAST('' AS {bytes})
    FROM numbers ORDER BY i;
INSERT INTO artifacts
    (id, execution_id, kind, size_bytes, mime_type, sha256, created_at, name, path)
    SELECT 'art_' || (1000000000000000 + i), 'exec_20231114_' || (10000001 + i * 10), 'output', 1,
        'text/plain', '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
        1700000000000000 + i * 1000000, 'out.txt', 'out.txt'
    FROM numbers ORDER BY i;
INSERT INTO session_notices (session_id, kind, noted_at, detail)
    SELECT 'sess_' || (1000000000000000 + i), 'status', 1700000000000000 + i * 1000000, '{}'
    FROM numbers ORDER BY i;
INSERT INTO audit (done_at, key_id, action, object, request_id, detail)
    SELECT 1700000000000000 + i * 1000000, NULL, 'session.create',
        'sess_' || (1000000000000000 + i), NULL, '{}'
    FROM numbers ORDER BY i;
INSERT INTO api_keys (id, name, hash, scope, created_at, revoked_at)
    SELECT 'key_' || (1000000000000000 + i), 'key', 'hash-' || i, 'read', i, NULL
    FROM numbers WHERE i < 1000 ORDER BY i;
INSERT INTO pool
    (id, template_id, node_id, created_at, container_id, executor_url, workspace_path)
    SELECT 'pool_' || (1000000000000000 + i), 'template-' || (i % 20), 'node-' || (i % 10), i, 'c',
        'http://127.0.0.1:1', '/srv/pool'
    FROM numbers WHERE i < 1000 ORDER BY i;
INSERT INTO containers
    (id, version, name, session_id, template_id, node_id, ip_address, executor_port,
     cpu_thousandths, memory_bytes, disk_bytes, max_processes, status, runtime, created_at,
     started_at, exited_at, exit_code, image)
    SELECT 'container-' || i, 2, 'sandbox', 'sess_' || (1000000000000000 + i),
        'template-' || (i % 20), 'node-' || (i % 10), NULL, NULL, 1000, 1073741824, 1073741824, 64,
        CASE WHEN i % 100 < 1 THEN 'running' ELSE 'exited' END,
        CASE WHEN i % 2 = 0 THEN 'docker' ELSE 'kubernetes' END,
        1700000000000000 + i * 1000000, NULL, NULL, NULL, 'python:3.11'
    FROM numbers ORDER BY i;

INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'sessions', '', template_id, status, 1, COUNT(*) FROM sessions
    GROUP BY template_id, status;
INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'agent_sessions', agent_id, template_id, status, 1, COUNT(*) FROM sessions
    WHERE agent_id IS NOT NULL GROUP BY agent_id, template_id, status;
INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'live_sessions', node_id, '', status, 1, COUNT(*) FROM sessions
    WHERE NOT is_over GROUP BY node_id, status;
INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'executions', session_id, '', status, 1, COUNT(*) FROM executions
    GROUP BY session_id, status;
INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'live_executions', '', '', '', 1, COUNT(*) FROM executions WHERE NOT is_over;
INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'containers', '', runtime, status, 1, COUNT(*) FROM containers GROUP BY runtime, status;
INSERT INTO counts (counted, owner, subject, status, slot, number)
    SELECT 'audit', '', '', '', 1, COUNT(*) FROM audit;
